"""How far images are from what was made of their codes. B images."""

from torch import Tensor

from dcdc.losses.affinity import at_least_float32


def reconstruction_loss(reconstructed: Tensor, images: Tensor) -> Tensor:
    """Half the squared error of an image, summed over its pixels, in the mean over the batch: the
    surprise under Gaussians of deviation 1, up to a constant."""
    if reconstructed.shape != images.shape:
        raise ValueError(
            f"images of {tuple(images.shape)} were reconstructed as {tuple(reconstructed.shape)}"
        )
    error = at_least_float32(reconstructed) - at_least_float32(images)
    return error.square().flatten(1).sum(1).mean() / 2

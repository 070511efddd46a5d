"""Images with the three channels that pretrained backbones read."""

from torch import Tensor, nn

from dcdc.errors import InputError


def require_grey_or_rgb(in_channels: int, name: str) -> None:
    if in_channels not in (1, 3):
        raise InputError(
            f"the pretrained backbone {name} reads grey or RGB images, not {in_channels} channels",
            remedy="take images of 1 or 3 channels without {network.sobel}",
        )


class AsRGB(nn.Module):
    """B x 1 x H x W or B x 3 x H x W to B x 3 x H x W; grey is repeated, without a copy."""

    def forward(self, x: Tensor) -> Tensor:
        return x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x

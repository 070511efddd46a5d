"""Instance contrast: the perturbed copies of an image against those of all others of the batch.

Shapes: B images, r copies of each, D numbers of a projection.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import EMPTY, at_least_float32


def instance_loss(*copies: Tensor, temperature: float) -> Tensor:
    """Each of the rB copies (r of B x D) finds each other one of its image among all copies of the
    other images, by cosine."""
    shapes = {copy.shape for copy in copies}
    if len(copies) < 2 or len(shapes) > 1 or copies[0].ndim != 2 or not len(copies[0]):
        raise ValueError(
            f"two copies or more need the same shape (images x numbers, an image at least), got "
            f"{' and '.join(str(tuple(copy.shape)) for copy in copies) or 'none'}"
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    with torch.autocast(copies[0].device.type, enabled=False):
        rows = F.normalize(at_least_float32(torch.cat(copies)), dim=1, eps=EMPTY)
        logits = rows @ rows.T / temperature
    n_images, n_rows = len(copies[0]), len(rows)
    place = torch.arange(n_rows, device=rows.device)
    of_same_image = place[:, None] % n_images == place % n_images
    losses = []
    for k in range(1, len(copies)):
        twin = (place + k * n_images) % n_rows
        no_answer = of_same_image & (place != twin[:, None])
        losses.append(F.cross_entropy(logits.masked_fill(no_answer, -torch.inf), twin))
    return torch.stack(losses).mean()

"""Hue shift.

B images of 3 channels, H x W pixels
"""

import torch
from torch import Tensor


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn the colour circle of each image by its shift (B), in turns."""
    red, green, blue = images.unbind(1)
    low, high = images.aminmax(dim=1)  # B x H x W
    span = high - low
    divisor = span.masked_fill(span == 0, 1)  # grey has no hue, and span 0 hides whatever it gets
    hue = torch.where(
        high == red,
        (green - blue) / divisor,
        torch.where(high == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    # HSV back to RGB without a table: how far each channel's ramp is below the high.
    phase = torch.arange(5, 0, -2, device=images.device)[:, None, None]  # red 5, green 3, blue 1
    place = (hue[:, None] + 6 * shift[:, None, None, None] + phase) % 6
    return high[:, None] - span[:, None] * torch.minimum(place, 4 - place).clamp_(0, 1)

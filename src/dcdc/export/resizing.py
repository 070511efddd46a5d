"""Photos of any size to a model's, inside a graph: what Pillow does to files, as plain products.

The centre square is kept and reduced by a triangle filter over averages of blocks, as by
`dcdc.data.decode`, in two passes that end in whole numbers. Pillow rounds once more where it
averages blocks, so a value may differ by a grey level or two. Shapes: N images, H x W pixels, C
channels, S pixels a side; L is H or W.
"""

import torch
from torch import Tensor

_REDUCING_GAP = 3  # as in `dcdc.data.decode`


def squared(images: Tensor, size: int) -> Tensor:
    """N x C x H x W, 0..255, to N x C x S x S, 0..255; those of that size stay as they are."""
    rows, columns = _numbered(images.shape[2]), _numbered(images.shape[3])
    height, width = rows[-1] + 1, columns[-1] + 1  # tensors, so that a graph takes any
    across = _rounded(images @ _shares(columns, width, height, size).T)
    return _rounded(_shares(rows, height, width, size) @ across)


def _numbered(length: int) -> Tensor:
    return torch.arange(length, dtype=torch.float32)


def _rounded(values: Tensor) -> Tensor:
    return torch.floor(values + 0.5)


def _shares(pixels: Tensor, length: Tensor, other: Tensor, size: int) -> Tensor:
    """S x L: how much of each pixel along one axis goes into each of the new ones."""
    side = torch.minimum(length, other)
    first = torch.floor((length - side) / 2)
    scale = side / size
    factor = torch.floor(scale / _REDUCING_GAP).clamp(min=1)  # pixels of a block along this axis
    reach = torch.where(factor > 1, scale / 2, length)  # blocks are counted from there
    start = torch.floor(first - reach).clamp(min=0)
    end = torch.minimum(torch.ceil(first + side + reach), length)
    block = torch.floor((pixels - start) / factor)
    n_averaged = torch.minimum(factor, end - start - block * factor).clamp(min=1)
    is_averaged = ((pixels >= start) & (pixels < end)) / n_averaged
    step = scale / factor
    centres = (first - start) / factor + (_numbered(size) + 0.5) * step
    distance = (block + 0.5 - centres[:, None]).abs() / step.clamp(min=1)
    shares = (1 - distance).clamp(min=0) * is_averaged
    return shares / shares.sum(dim=1, keepdim=True)

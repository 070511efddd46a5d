"""The whole set on the device, so that a batch costs one gather and no copy from the host.

Shapes: N images, B images of a batch, C channels, H x W pixels.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_CHUNK_BYTES = 64 * 2**20


class DeviceStore:
    """uint8 images (N x H x W x C in numpy) as one tensor on a device; a copy, never an alias."""

    def __init__(self, images_nhwc_uint8: NDArray[np.uint8], device: torch.device | str) -> None:
        assert images_nhwc_uint8.dtype == np.uint8, images_nhwc_uint8.dtype
        assert images_nhwc_uint8.ndim == 4, images_nhwc_uint8.shape
        self._nhwc = torch.empty(images_nhwc_uint8.shape, dtype=torch.uint8, device=device)
        # in pieces, so that a memory-mapped set is never in host memory as a whole
        step = max(1, _CHUNK_BYTES // images_nhwc_uint8[0].nbytes)
        for start in range(0, len(self), step):
            piece = np.array(images_nhwc_uint8[start : start + step], order="C")
            self._nhwc[start : start + step] = torch.from_numpy(piece)

    def __len__(self) -> int:
        return len(self._nhwc)

    @property
    def images(self) -> Tensor:
        """N x C x H x W, channels-last in memory."""
        return self._nhwc.permute(0, 3, 1, 2)

    def batch(self, indices: Tensor) -> Tensor:
        """B x C x H x W, channels-last in memory, in the order of `indices`."""
        on_device = indices.to(self._nhwc.device, non_blocking=True)
        return self._nhwc.index_select(0, on_device).permute(0, 3, 1, 2)

    def in_chunks(self, chunk_size: int) -> Iterator[Tensor]:
        """Every image once, in order: views of at most `chunk_size` x C x H x W."""
        for start in range(0, len(self), chunk_size):
            yield self.images[start : start + chunk_size]

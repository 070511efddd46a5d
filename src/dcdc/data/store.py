"""Where batches come from: the whole set on the device, or streamed from a mapped file.

Shapes: N images that are answered, E extra ones after them, B images of a batch, C channels.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.data.mapped import gather_rows, mapping_of, release_pages

_CHUNK_BYTES = 64 * 2**20
_RESIDENT_BYTES = 512 * 2**20  # of host memory, for a mapped set
_RESIDENT_SHARE = 0.5  # of a GPU's free memory
Images = NDArray[np.uint8]


class Store(Protocol):
    """N + E uint8 images; batches are B x C x H x W, channels-last in memory."""

    n_answered: int
    is_resident: bool

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor) -> Tensor:
        """In the order of `indices`; those from N on are extra images."""
        ...

    def in_chunks(self, chunk_size: int) -> Iterator[Tensor]:
        """Every answered image once, in order, at most `chunk_size` at a time."""
        ...


def open_store(images: Images, device: torch.device | str, extra: Images | None = None) -> Store:
    """Resident where the set fits comfortably, streamed where it does not."""
    parts = [images] if extra is None else [images, extra]
    n_bytes = sum(part.nbytes for part in parts)
    device = torch.device(device)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        fits = n_bytes <= _RESIDENT_SHARE * free
    else:
        # What is in memory already may as well be copied there.
        fits = n_bytes <= _RESIDENT_BYTES or not any(mapping_of(part) for part in parts)
    return DeviceStore(images, device, extra) if fits else StreamedStore(images, device, extra)


class DeviceStore:
    """The whole set as one tensor on a device: a batch costs one gather, no copy from the host."""

    is_resident = True

    def __init__(
        self, images: Images, device: torch.device | str, extra: Images | None = None
    ) -> None:
        parts = _checked(images, extra)
        self.n_answered = len(images)
        n_images = sum(map(len, parts))
        self._nhwc = torch.empty((n_images, *images.shape[1:]), dtype=torch.uint8, device=device)
        row = 0
        for part in parts:
            for piece in _pieces(part, max(1, _CHUNK_BYTES // part[0].nbytes)):
                self._nhwc[row : row + len(piece)] = torch.from_numpy(piece)
                row += len(piece)

    def __len__(self) -> int:
        return len(self._nhwc)

    @property
    def images(self) -> Tensor:
        """N + E x C x H x W, channels-last in memory."""
        return self._nhwc.permute(0, 3, 1, 2)

    def batch(self, indices: Tensor) -> Tensor:
        on_device = indices.to(self._nhwc.device, non_blocking=True)
        return self._nhwc.index_select(0, on_device).permute(0, 3, 1, 2)

    def in_chunks(self, chunk_size: int) -> Iterator[Tensor]:
        for start in range(0, self.n_answered, chunk_size):
            yield self.images[start : min(start + chunk_size, self.n_answered)]


class StreamedStore:
    """Batches gathered from the map as they are asked for; memory stays flat."""

    is_resident = False

    def __init__(
        self, images: Images, device: torch.device | str, extra: Images | None = None
    ) -> None:
        self._parts = _checked(images, extra)
        self._device = torch.device(device)
        self.n_answered = len(images)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def batch(self, indices: Tensor) -> Tensor:
        wanted = indices.cpu().numpy()
        rows = np.empty((len(wanted), *self._parts[0].shape[1:]), np.uint8)
        first = 0
        for part in self._parts:
            here = np.flatnonzero((wanted >= first) & (wanted < first + len(part)))
            rows[here] = gather_rows(part, wanted[here] - first)
            first += len(part)
        return torch.from_numpy(rows).to(self._device).permute(0, 3, 1, 2)

    def in_chunks(self, chunk_size: int) -> Iterator[Tensor]:
        for piece in _pieces(self._parts[0], chunk_size):
            yield torch.from_numpy(piece).to(self._device).permute(0, 3, 1, 2)


def _checked(images: Images, extra: Images | None) -> list[Images]:
    parts = [images] if extra is None else [images, extra]
    for part in parts:
        assert part.dtype == np.uint8, part.dtype
        assert part.ndim == 4, part.shape
        assert part.shape[1:] == images.shape[1:], (part.shape, images.shape)
    return parts


def _pieces(images: Images, n_images: int) -> Iterator[Images]:
    """Copies, never views: a mapped set is never in memory as a whole, nor its file written."""
    for start in range(0, len(images), n_images):
        yield np.array(images[start : start + n_images], order="C")
        release_pages(images)

"""Where batches come from: the order of an epoch, and the whole set on the device, or streamed from
a mapped file.

Shapes: N images that are answered, E extra ones after them, B images of a batch, C channels.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.data.mapped import mapping_of, slices_within
from dcdc.data.streaming import Images, JoinedRows, ReadAhead, open_lane
from dcdc.errors import InputError

_CHUNK_BYTES = 64 * 2**20
_RESIDENT_BYTES = 512 * 2**20  # of host memory, for a mapped set
_RESIDENT_SHARE = 0.5  # of a GPU's free memory
_BATCHES_AHEAD = 3


def epoch_batches(n_images: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Indices, steps x batch_size: a fresh permutation cut into batches of one size.

    The incomplete last batch is dropped; the next epoch's permutation leaves out other images.
    """
    if not 1 <= batch_size <= n_images:
        raise InputError(
            f"batch size is {batch_size} for {n_images} images: give one from 1 to {n_images}"
        )
    order = torch.randperm(n_images, generator=generator, device=generator.device)
    n_steps = n_images // batch_size
    return order[: n_steps * batch_size].view(n_steps, batch_size)


class Store(Protocol):
    """N + E uint8 images; batches are B x C x H x W, channels-last in memory."""

    n_answered: int
    is_resident: bool

    def __len__(self) -> int: ...

    @property
    def description(self) -> str:
        """One line for people."""
        ...

    def expect(self, batches: Tensor) -> None:
        """The batches (steps x B, on the CPU) that will be asked for next, in this order; a
        streamed store reads ahead."""
        ...

    def batch(self, indices: Tensor) -> Tensor:
        """In the order of `indices`; those from N on are extra images."""
        ...

    def in_chunks(self, chunk_size: int, rows: slice | None = None) -> Iterator[Tensor]:
        """Every answered image once, or those of some rows in a run, in order, at most
        `chunk_size` at a time."""
        ...


def open_store(
    images: Images, device: torch.device | str, extra: Images | None = None, n_sharing: int = 1
) -> Store:
    """Resident where the set fits comfortably, streamed where it does not.

    `n_sharing`: processes that share this host's memory, each with a store of its own.
    """
    parts = _checked(images, extra)
    n_bytes = sum(part.nbytes for part in parts)
    device = torch.device(device)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        fits = n_bytes <= _RESIDENT_SHARE * free
    else:
        # What is in memory already may as well be copied there.
        small = n_sharing * n_bytes <= _RESIDENT_BYTES
        fits = small or not any(mapping_of(part) for part in parts)
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
            for rows in slices_within(part, _CHUNK_BYTES):
                # A copy, never a view: the file of a map is not to be written.
                piece = np.array(part[rows], order="C")
                self._nhwc[row : row + len(piece)] = torch.from_numpy(piece)
                row += len(piece)

    def __len__(self) -> int:
        return len(self._nhwc)

    @property
    def description(self) -> str:
        return f"resident on {self._nhwc.device} ({_readable(self._nhwc.nbytes)})"

    @property
    def images(self) -> Tensor:
        """N + E x C x H x W, channels-last in memory."""
        return self._nhwc.permute(0, 3, 1, 2)

    def expect(self, batches: Tensor) -> None:
        """Every image is there already."""

    def batch(self, indices: Tensor) -> Tensor:
        on_device = indices.to(self._nhwc.device, non_blocking=True)
        return self._nhwc.index_select(0, on_device).permute(0, 3, 1, 2)

    def in_chunks(self, chunk_size: int, rows: slice | None = None) -> Iterator[Tensor]:
        start, stop = _run(rows, self.n_answered)
        for first in range(start, stop, chunk_size):
            yield self.images[first : min(first + chunk_size, stop)]


class StreamedStore:
    """Read from the map's file, ahead of time where the batches are known; memory stays flat."""

    is_resident = False

    def __init__(
        self, images: Images, device: torch.device | str, extra: Images | None = None
    ) -> None:
        parts = _checked(images, extra)
        self.n_answered = len(images)
        self._n_bytes = sum(part.nbytes for part in parts)
        self._row_shape = images.shape[1:]
        self._rows = JoinedRows(parts)
        self._device = torch.device(device)
        self._lane = open_lane(self._device)
        self._ahead: ReadAhead | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def description(self) -> str:
        size = _readable(self._n_bytes)
        return f"streamed from a map of {size}, {_BATCHES_AHEAD} batches ahead"

    def expect(self, batches: Tensor) -> None:
        """What was expected before is dropped."""
        assert batches.ndim == 2, batches.shape
        self.close()
        if batches.numel():
            self._ahead = self._read_ahead(list(batches.cpu().numpy()), _BATCHES_AHEAD)

    def batch(self, indices: Tensor) -> Tensor:
        """The next expected batch, where there is one: indices on a GPU are only counted."""
        ahead = self._ahead
        if ahead is None or ahead.upcoming is None:
            nhwc = self._rows.gather(indices.cpu().numpy()).to(self._device)
        else:
            _check_announced(indices, ahead.upcoming)
            nhwc = ahead.take()
        return nhwc.permute(0, 3, 1, 2)

    def in_chunks(self, chunk_size: int, rows: slice | None = None) -> Iterator[Tensor]:
        start, stop = _run(rows, self.n_answered)
        starts = range(start, stop, chunk_size)
        chunks = [np.arange(s, min(s + chunk_size, stop)) for s in starts]
        if not chunks:
            return
        with closing(self._read_ahead(chunks, n_ahead=1)) as ahead:
            for _ in chunks:
                yield ahead.take().permute(0, 3, 1, 2)

    def close(self) -> None:
        """Ends reading ahead; batches can still be asked for."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _read_ahead(self, batches: Sequence[NDArray[np.int64]], n_ahead: int) -> ReadAhead:
        slots = self._lane.slots(n_ahead, (len(batches[0]), *self._row_shape))
        return ReadAhead(self._rows.read, batches, slots)


def _run(rows: slice | None, n_answered: int) -> tuple[int, int]:
    start, stop, step = (rows or slice(None)).indices(n_answered)
    assert step == 1, rows
    return start, stop


def _check_announced(indices: Tensor, announced: NDArray[np.int64]) -> None:
    if len(indices) != len(announced):
        raise ValueError(
            f"a batch of {len(indices)} images was asked for, one of {len(announced)} is expected "
            "next: say so with expect() first"
        )
    if indices.device.type == "cpu" and not np.array_equal(indices.numpy(), announced):
        raise ValueError("other images were asked for than are expected: call expect() first")


def _checked(images: Images, extra: Images | None) -> list[Images]:
    parts = [images] if extra is None else [images, extra]
    for part in parts:
        assert part.dtype == np.uint8, part.dtype
        assert part.ndim == 4, part.shape
        assert part.shape[1:] == images.shape[1:], (part.shape, images.shape)
    return parts


def _readable(n_bytes: int) -> str:
    if n_bytes >= 10**9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes >= 10**6 else f"{n_bytes / 1e3:.0f} kB"

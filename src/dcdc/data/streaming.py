"""Rows of files on their way to a device: a thread reads some ahead of those in use.

Shapes: B rows of a batch, each H x W x C.
"""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.data.mapped import gather_rows, root_map
from dcdc.errors import InputError

_LAST_WAIT_SECONDS = 2.0  # for a reading thread that was told to end
Images = NDArray[np.uint8]
Indices = NDArray[np.int64]
Read = Callable[[Indices, Images], None]
"""Puts the rows asked for, in that order, into B x H x W x C."""


class Rows(Protocol):
    def read(self, rows: Indices, into: Images, places: Indices) -> None:
        """Puts some rows at some places of `into`, which is contiguous."""
        ...


def open_rows(images: Images) -> Rows:
    """From the file below a map where that can be read, from the array itself elsewhere."""
    root = root_map(images)
    if root is None or root.filename is None or not images.size or not hasattr(os, "preadv"):
        return ArrayRows(images)
    axes = sorted((1, 2, 3), key=lambda axis: -images.strides[axis])
    if not images.transpose(0, *axes)[0].flags.c_contiguous:
        return ArrayRows(images)
    first_byte = root.offset + _address(images) - _address(root)
    try:
        rows = FileRows(str(root.filename), first_byte, images, axes)
    except OSError:  # the map outlives the file's name
        return ArrayRows(images)
    ends = np.array([0, len(images) - 1])
    found = np.empty((2, *images.shape[1:]), np.uint8)
    rows.read(ends, found, np.arange(2))
    is_the_file_mapped = np.array_equal(found, gather_rows(images, ends))
    return rows if is_the_file_mapped else ArrayRows(images)


class FileRows:
    """Reads past the map: no page of it becomes the process's memory.

    Bringing pages into a map and giving them back holds up every other thread, and a file that is
    cut short ends a process that has it mapped; here it is an error.
    """

    def __init__(
        self, path: str, first_byte: int, images: Images, stored_axes: Sequence[int]
    ) -> None:
        """`stored_axes`: those of a row as they follow each other in the file."""
        self._path = path
        self._first_byte, self._step = first_byte, images.strides[0]
        self._row_bytes = images[0].nbytes
        self._stored_shape = tuple(images.shape[axis] for axis in stored_axes)
        self._as_asked = (0, *(1 + int(axis) for axis in np.argsort(stored_axes)))
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def read(self, rows: Indices, into: Images, places: Indices) -> None:
        if not len(rows):
            return
        if self._as_asked == (0, 1, 2, 3):
            self._read_stored(rows, into, places)
        else:
            stored = np.empty((len(rows), *self._stored_shape), np.uint8)
            self._read_stored(rows, stored, np.arange(len(rows)))
            into[places] = stored.transpose(self._as_asked)

    def _read_stored(self, rows: Indices, into: Images, places: Indices) -> None:
        is_new_run = (np.diff(rows) != 1) | (np.diff(places) != 1)
        is_new_run |= self._step != self._row_bytes
        starts = np.concatenate([[0], np.flatnonzero(is_new_run) + 1])
        sizes = (np.diff(starts, append=len(rows)) * self._row_bytes).tolist()
        offsets = (self._first_byte + rows[starts] * self._step).tolist()
        memory = into.data.cast("B")
        if hasattr(os, "posix_fadvise"):  # a disk is quicker when it knows of them all at once
            for offset, size in zip(offsets, sizes, strict=True):
                os.posix_fadvise(self._file, offset, size, os.POSIX_FADV_WILLNEED)
        to = (places[starts] * self._row_bytes).tolist()
        for begin, size, offset in zip(to, sizes, offsets, strict=True):
            self._read_run(memory[begin : begin + size], offset)

    def _read_run(self, memory: memoryview, offset: int) -> None:
        while memory:
            try:
                n_read = os.preadv(self._file, [memory], offset)
            except OSError as error:
                raise InputError(f"cannot read {self._path}: {error.strerror}") from error
            if n_read == 0:
                raise InputError(
                    f"{self._path} was cut short while it was in use: put it back as it was, "
                    "then resume"
                )
            memory, offset = memory[n_read:], offset + n_read


class ArrayRows:
    """Arrays in memory, and views of a map whose rows lie scattered in the file."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def read(self, rows: Indices, into: Images, places: Indices) -> None:
        into[places] = gather_rows(self._images, rows)


class JoinedRows:
    """Arrays of rows of one shape, counted on from one to the next."""

    def __init__(self, parts: Sequence[Images]) -> None:
        self._parts = [(open_rows(part), len(part)) for part in parts]
        self._row_shape = parts[0].shape[1:]

    def __len__(self) -> int:
        return sum(n_rows for _, n_rows in self._parts)

    def gather(self, wanted: Indices) -> Tensor:
        """B x H x W x C on the host."""
        rows = np.empty((len(wanted), *self._row_shape), np.uint8)
        self.read(wanted, rows)
        return torch.from_numpy(rows)

    def read(self, wanted: Indices, into: Images) -> None:
        wanted = wanted.astype(np.int64, copy=False)  # bytes are counted beyond 32 bits
        outside = wanted[(wanted < 0) | (wanted >= len(self))]
        if len(outside):
            raise IndexError(f"there is no image {outside[0]} among {len(self)}")
        first = 0
        for rows, n_rows in self._parts:
            places = np.flatnonzero((wanted >= first) & (wanted < first + n_rows))
            rows.read(wanted[places] - first, into, places)
            first += n_rows


class Slot(Protocol):
    """Room for one batch; the reading thread fills it, then the other takes it, in turn."""

    def fill(self, n_rows: int, read: Callable[[Images], None]) -> None: ...

    def take(self) -> Tensor:
        """B x H x W x C on the device, in memory that no later batch overwrites."""
        ...


class Lane(Protocol):
    """The way from the host to a device."""

    def slots(self, count: int, largest: tuple[int, ...]) -> Sequence[Slot]:
        """`largest`: the B x H x W x C that must fit."""
        ...


def open_lane(device: torch.device) -> Lane:
    return CudaLane(device) if device.type == "cuda" else PlainLane(device)


class PlainLane:
    def __init__(self, device: torch.device) -> None:
        self._device = device

    def slots(self, count: int, largest: tuple[int, ...]) -> Sequence[Slot]:
        return [PlainSlot(self._device, largest) for _ in range(count)]


class PlainSlot:
    """Used again and copied by numpy: a thread's own blocks, and torch's aligned ones, pile up."""

    def __init__(self, device: torch.device, largest: tuple[int, ...]) -> None:
        self._device = device
        self._rows = np.empty(largest, np.uint8)
        self._n_rows = 0

    def fill(self, n_rows: int, read: Callable[[Images], None]) -> None:
        read(self._rows[:n_rows])
        self._n_rows = n_rows

    def take(self) -> Tensor:
        return torch.from_numpy(self._rows[: self._n_rows].copy()).to(self._device)


class CudaLane:
    """Pinned memory and a stream of its own: copies run while the device computes."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def slots(self, count: int, largest: tuple[int, ...]) -> Sequence[Slot]:
        return [CudaSlot(self._stream, largest) for _ in range(count)]


class CudaSlot:
    """The host waits for the device only when it would overwrite rows still being copied.

    A graph that is captured meanwhile must be captured with `capture_error_mode="thread_local"`:
    that wait, in the reading thread, would spoil a capture that watches every thread.
    """

    def __init__(self, stream: torch.cuda.Stream, largest: tuple[int, ...]) -> None:
        self._stream = stream
        # Evaluation asks in inference mode; the reading thread, which writes them, is in none.
        with torch.inference_mode(mode=False):
            self._pinned = torch.empty(largest, dtype=torch.uint8, pin_memory=True)
            with torch.cuda.stream(stream):  # whose memory it then is, until `take` lends it out
                self._copy = torch.empty(largest, dtype=torch.uint8, device=stream.device)
        self._copied = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        self._taken = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._n_rows = 0

    def fill(self, n_rows: int, read: Callable[[Images], None]) -> None:
        self._copied.synchronize()
        read(self._pinned[:n_rows].numpy())
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(self._taken)
            self._copy[:n_rows].copy_(self._pinned[:n_rows], non_blocking=True)
            self._copied.record(self._stream)
        self._n_rows = n_rows

    def take(self) -> Tensor:
        user = torch.cuda.current_stream(self._stream.device)
        user.wait_event(self._copied)
        rows = self._copy[: self._n_rows].clone()
        self._copy.record_stream(user)
        self._taken.record(user)
        return rows


class ReadAhead:
    """Batches in the order announced; at most as many as there are slots wait to be taken."""

    def __init__(self, read: Read, batches: Sequence[Indices], slots: Sequence[Slot]) -> None:
        self._batches = batches
        self._n_taken = 0
        self._free: SimpleQueue[Slot | None] = SimpleQueue()
        self._filled: SimpleQueue[Slot | BaseException] = SimpleQueue()
        for slot in slots:
            self._free.put(slot)
        is_over = threading.Event()
        thread = threading.Thread(
            # Nothing here may know of `self`: it could never be collected while the thread runs.
            target=_fill_slots,
            args=(read, batches, self._free, self._filled, is_over),
            name="dcdc-read-ahead",
            daemon=True,
        )
        self._end = weakref.finalize(self, _end_thread, thread, self._free, is_over)
        thread.start()

    @property
    def upcoming(self) -> Indices | None:
        """Of the next batch to be taken, if there is one."""
        return self._batches[self._n_taken] if self._n_taken < len(self._batches) else None

    def take(self) -> Tensor:
        """The next batch, B x H x W x C; an error of the reading thread comes in its batch's place.

        After any exception the rest is lost: the order would no longer be sure.
        """
        try:
            filled = self._filled.get()
            if isinstance(filled, BaseException):
                raise filled
            rows = filled.take()
            self._n_taken += 1
            self._free.put(filled)
        except BaseException:
            self.close()
            raise
        return rows

    def close(self) -> None:
        """Ends the thread, as do garbage collection and the end of the interpreter."""
        self._batches = self._batches[: self._n_taken]
        self._end()


def _fill_slots(
    read: Read,
    batches: Sequence[Indices],
    free: "SimpleQueue[Slot | None]",
    filled: "SimpleQueue[Slot | BaseException]",
    is_over: threading.Event,
) -> None:
    try:
        for wanted in batches:
            slot = free.get()
            if slot is None or is_over.is_set():
                return
            slot.fill(len(wanted), partial(read, wanted))
            filled.put(slot)
    except BaseException as error:  # whatever it is, somebody waits for that batch
        filled.put(error)


def _end_thread(
    thread: threading.Thread, free: "SimpleQueue[Slot | None]", is_over: threading.Event
) -> None:
    is_over.set()
    free.put(None)
    if thread is not threading.current_thread():  # garbage is collected in any thread
        thread.join(_LAST_WAIT_SECONDS)


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])

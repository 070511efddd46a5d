"""The reading of images, with a bar, that several verbs share, by one process or by several."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dcdc.cli.console import note
from dcdc.cli.progress import decoding
from dcdc.config import DataConfig
from dcdc.printable import counted
from dcdc.runtime.launch import read_launch

if TYPE_CHECKING:
    from dcdc.data import Data, Skipped
    from dcdc.runtime.processes import Processes

_MOST_SKIPPED_SHOWN = 5


@contextmanager
def joined_processes(device: str) -> "Iterator[Processes]":
    """Those that torchrun started, or this one alone."""
    from dcdc.runtime.device import take_device
    from dcdc.runtime.processes import Processes, joined

    launch = read_launch()
    if not launch.is_several:
        yield Processes(launch)
        return
    with joined(launch, take_device(device, launch.local_rank)) as processes:
        yield processes


def read_configured(
    data: DataConfig, processes: "Processes | None" = None, *, quiet: bool, **how: Any
) -> "Data":
    """A run's own images, as its config names them."""
    from dcdc.prepare.prepare_run import how_to_read

    return read_images(data.source, processes, **how_to_read(data), **how, quiet=quiet)


def read_images(
    source: str,
    processes: "Processes | None" = None,
    *,
    quiet: bool,
    again: bool = False,
    **how: Any,
) -> "Data":
    """`how` as dcdc.data.load_data takes it: size, largest_side, target, on_bad. `again`: at
    another size, so all was told of them."""
    from dcdc.data import label_columns, load_data

    def on_wait() -> None:
        if not quiet:
            note("another run is reading the same images: waiting for it")

    def read() -> "Data":
        with decoding(quiet=quiet) as progress:
            n_others = processes.size - 1 if processes else 0
            told = _told_once(progress, n_others, quiet=quiet)
            return load_data(source, **how, progress=told, on_wait=on_wait)

    image_set = _in_turn(processes, read) if processes else read()
    if again or not (processes is None or processes.is_first):
        return image_set
    tell_skipped(image_set.skipped)
    tell_left_out(getattr(image_set, "left_out", {}))
    if image_set.targets is None and how.get("target") is None and not quiet:
        columns = label_columns(source)
        if columns:
            note(f"to score against labels, name their column by --target: {', '.join(columns)}")
    return image_set


def _in_turn(processes: "Processes", read: Callable[[], "Data"]) -> "Data":
    """The first process of a host reads, and the others find what it has cached."""
    if not processes.joined:
        return read()
    found = processes.with_barrier(read if processes.is_first_of_host else lambda: None)
    return processes.with_barrier(lambda: read() if found is None else found)


def described(data: "Data") -> str:
    """How many there are, and of which shape."""
    from dcdc.data import VectorSet

    if isinstance(data, VectorSet):
        return f"{counted(data.n_images, 'feature vector')} of {data.n_features}"
    height, width, channels = data.image_shape
    return f"{counted(data.n_images, 'image')} of {height}x{width}x{channels}"


def tell_skipped(skipped: "Sequence[Skipped]") -> None:
    for each in skipped[:_MOST_SKIPPED_SHOWN]:
        note(f"skipped {each.name}: {each.reason}")
    if len(skipped) > _MOST_SKIPPED_SHOWN:
        note(f"skipped {counted(len(skipped) - _MOST_SKIPPED_SHOWN, 'more image')}")


def tell_left_out(left_out: Mapping[str, int]) -> None:
    """Of a folder: nobody looks for what was passed over without a word."""
    from dcdc.data.left_out import told

    if left_out:
        note(f"left out: {told(left_out)}")


def _told_once(
    progress: Callable[[int, int], None] | None, n_others: int, *, quiet: bool
) -> Callable[[int, int], None] | None:
    """Says so where others wait for images that are being decoded."""
    if quiet or not n_others:
        return progress
    told = False

    def tell(done: int, total: int) -> None:
        nonlocal told
        if not told:
            others = counted(n_others, "other process waits", "other processes wait")
            note(f"decoding {total:,} images, once: {others} for it")
            told = True
        if progress is not None:
            progress(done, total)

    return tell

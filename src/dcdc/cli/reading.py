"""The reading of images, with a bar, that several verbs share, by one process or by several."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dcdc.cli.console import note
from dcdc.cli.progress import decoding
from dcdc.config import DataConfig
from dcdc.runtime.launch import read_launch

if TYPE_CHECKING:
    from dcdc.data import ImageSet, Skipped
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
) -> "ImageSet":
    """A run's own images, as its config names them."""
    wanted = asdict(data)
    return read_images(wanted.pop("source"), processes, **wanted, **how, quiet=quiet)


def read_images(
    source: str, processes: "Processes | None" = None, *, quiet: bool, **how: Any
) -> "ImageSet":
    """`how` as dcdc.data.load_images takes it: size, largest_side, target, on_bad."""
    from dcdc.data import label_columns, load_images

    def on_wait() -> None:
        if not quiet:
            note("another run is reading the same images: waiting for it")

    def read() -> "ImageSet":
        with decoding(quiet=quiet) as progress:
            n_others = processes.size - 1 if processes else 0
            told = _told_once(progress, n_others, quiet=quiet)
            return load_images(source, **how, progress=told, on_wait=on_wait)

    image_set = _in_turn(processes, read) if processes else read()
    tell_skipped(image_set.skipped)
    if image_set.targets is None and how.get("target") is None and not quiet:
        columns = label_columns(source)
        if columns:
            note(f"to score against labels, name their column by --target: {', '.join(columns)}")
    return image_set


def _in_turn(processes: "Processes", read: Callable[[], "ImageSet"]) -> "ImageSet":
    """The first process of a host reads, and the others find what it has cached."""
    if not processes.joined:
        return read()
    found = processes.with_barrier(read if processes.is_first_of_host else lambda: None)
    return processes.with_barrier(lambda: read() if found is None else found)


def tell_skipped(skipped: "Sequence[Skipped]") -> None:
    for each in skipped[:_MOST_SKIPPED_SHOWN]:
        note(f"skipped {each.name}: {each.reason}")
    if len(skipped) > _MOST_SKIPPED_SHOWN:
        note(f"skipped {len(skipped) - _MOST_SKIPPED_SHOWN:,} more images")


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
            note(f"decoding {total:,} images, once: {n_others} other process(es) wait for it")
            told = True
        if progress is not None:
            progress(done, total)

    return tell

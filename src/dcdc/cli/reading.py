"""The reading of images, with a bar, that several verbs share."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dcdc.cli.console import note
from dcdc.cli.progress import decoding
from dcdc.config import DataConfig

if TYPE_CHECKING:
    from dcdc.data import ImageSet, Skipped

_MOST_SKIPPED_SHOWN = 5


def read_configured(data: DataConfig, *, quiet: bool, **how: Any) -> "ImageSet":
    """A run's own images, as its config names them."""
    wanted = asdict(data)
    return read_images(wanted.pop("source"), **wanted, **how, quiet=quiet)


def read_images(source: str, *, quiet: bool, **how: Any) -> "ImageSet":
    """`how` as dcdc.data.load_images takes it: size, largest_side, target, on_bad."""
    from dcdc.data import label_columns, load_images

    def on_wait() -> None:
        if not quiet:
            note("another run is reading the same images: waiting for it")

    with decoding(quiet=quiet) as progress:
        image_set = load_images(source, **how, progress=progress, on_wait=on_wait)
    tell_skipped(image_set.skipped)
    if image_set.targets is None and how.get("target") is None and not quiet:
        columns = label_columns(source)
        if columns:
            note(f"to score against labels, name their column by --target: {', '.join(columns)}")
    return image_set


def tell_skipped(skipped: "Sequence[Skipped]") -> None:
    for each in skipped[:_MOST_SKIPPED_SHOWN]:
        note(f"skipped {each.name}: {each.reason}")
    if len(skipped) > _MOST_SKIPPED_SHOWN:
        note(f"skipped {len(skipped) - _MOST_SKIPPED_SHOWN:,} more images")

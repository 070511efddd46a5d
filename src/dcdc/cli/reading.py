"""The reading of images, with a bar, that several verbs share."""

from typing import TYPE_CHECKING

from dcdc.cli.console import note
from dcdc.cli.progress import decoding

if TYPE_CHECKING:
    from dcdc.data import ImageSet


def read_images(source: str, *, size: int | None, on_bad: str, quiet: bool) -> "ImageSet":
    from dcdc.data import load_images

    with decoding(quiet=quiet) as progress:
        image_set = load_images(source, size=size, on_bad=on_bad, progress=progress)
    for skipped in image_set.skipped:
        note(f"skipped {skipped.name}: {skipped.reason}")
    return image_set

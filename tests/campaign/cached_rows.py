"""Single flipped bits, and other damage, of decoded images and stored features in the cache.

What is in the cache can be made again: the answer is always that of an untouched one.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from campaign import answers
from campaign.case import Case, fresh_folder
from campaign.ground import Ground, ground
from campaign.mutations import (
    NO_FILE,
    cut,
    drawing,
    flipped,
    in_place,
    overwritten,
    replaced,
    texts,
)
from campaign.process import call


def decoded_cases() -> Iterator[Case]:
    yield from _cases("images", partial(_read_images, ground()), n_rows=600, n_notes=160)


def features_cases() -> Iterator[Case]:
    yield from _cases("features", partial(_read_features, ground()), n_rows=150, n_notes=40)


def _cases(what: str, read: Callable[[], None], *, n_rows: int, n_notes: int) -> Iterator[Case]:
    place, wanted = _built(what)
    entries = [path for path in sorted(place.rglob("*")) if path.is_file()]
    only = "features-" if what == "features" else ""
    for path in entries:
        relative = str(path.relative_to(place))
        if path.suffix == ".lock" or only not in relative:
            continue
        content = path.read_bytes()
        draw = drawing("cache", what, path.name if path.suffix != ".note" else "note")
        damages = [
            *flipped(content, n_rows if path.name == "rows" else n_notes, draw),
            *cut(content, 8),
            *overwritten(content, 4, draw),
            *replaced(content),
        ]
        if path.name != "rows":
            damages += texts(content)
        name = path.name if path.suffix != ".note" else "note"
        for words, damage in [*damages, *NO_FILE.items()]:
            yield Case(
                name=f"{name} of {what}: {words}",
                prepare=partial(_lay, place, relative, damage, read),
                names=("cache", path.name),
                answer=answers.said,
                wanted=wanted,
                made_again=("cache/*", "cache/*/*", "cache/*/*/*"),
                cache=Path("cache"),
            )


def _lay(
    place: Path, relative: str, damage: Any, read: Callable[[], None], folder: Path
) -> Callable[[], None]:
    shutil.copytree(place, folder / "cache")
    target = folder / "cache" / relative
    if callable(damage):
        in_place(target, damage)
    else:
        target.write_bytes(damage)
    return read


@lru_cache
def _built(what: str) -> tuple[Path, str]:
    made = ground()
    place = made.folder / f"cache-of-{what}"
    read = partial(_read_images if what == "images" else _read_features, made)
    with fresh_folder() as folder:
        first = call(read, folder, cache=place)
        again = call(read, folder, cache=place)
        assert (first.code, again.code) == (0, 0), first.err + again.err
        assert first.out == again.out
    return place, first.out


def _read_images(made: Ground) -> None:
    from dcdc.cli.faults import exit_codes
    from dcdc.data import load_images

    with exit_codes():
        images = load_images(made.photos)
        content = images.images.tobytes() + "".join(images.names).encode()
        print(images.images.shape, hashlib.sha256(content).hexdigest())


def _read_features(made: Ground) -> None:
    import dcdc
    from dcdc.cli.faults import exit_codes
    from dcdc.data import load_images
    from dcdc.prepare.stored_features import stored_features

    with exit_codes():
        model = dcdc.load(made.image_run, "cpu")
        found = stored_features(model, load_images(made.photos, size=8))
        print(found.shape, hashlib.sha256(found.tobytes()).hexdigest())

"""Damaged `OUT.partial` folders of a prediction that was killed: it goes on to the same table."""

import shutil
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from campaign.case import Case, fresh_folder
from campaign.disturbed_verbs import _all_files
from campaign.file_operations import die
from campaign.ground import Ground, ground
from campaign.mutations import (
    EDITED,
    NO_FILE,
    cut,
    drawing,
    flipped,
    in_place,
    json_values,
    overwritten,
    replaced,
    texts,
)
from campaign.process import Ended, call, run_verb
from campaign.run_files import FEWER

_OUT = "out.csv"


def cases() -> Iterator[Case]:
    made = ground()
    place, wanted = _killed()
    for path in sorted(place.iterdir()):
        content = path.read_bytes()
        draw = drawing("partial", path.name)
        damages = list(replaced(content))
        # A lock that names another machine is watched for a while, which is no hang.
        if not path.name.endswith("lock"):
            damages += [*cut(content, 8), *flipped(content, 24, draw)]
            damages += overwritten(content, 4, draw)
        if path.name == "journal":
            damages += texts(content)
            head, *lines = content.splitlines(keepends=True)
            for words, changed in json_values(head, FEWER):
                damages.append((f"header, {words}", b"".join([changed, b"\n", *lines])))
            for words, changed in json_values(lines[0], FEWER):
                damages.append((f"line, {words}", b"".join([head, changed, b"\n", *lines[1:]])))
        for words, damage in [*damages, *NO_FILE.items()]:
            yield Case(
                name=f"{path.name} {words}",
                prepare=partial(_lay, made, place, path.name, damage),
                names=(f"{_OUT}.partial", _OUT),
                answer=_answer,
                wanted=None if words.endswith(EDITED) else wanted,
                makes=(_OUT, "out.npy"),
                made_again=(f"{_OUT}.partial", f"{_OUT}.partial/*"),
                cache=made.cache,
            )


def _answer(folder: Path, ended: Ended) -> dict[str, str]:  # noqa: ARG001
    """Of every file that lies there."""
    return _all_files(folder)


def _arguments(made: Ground) -> list[object]:
    flags = ["--out", _OUT, "--features", "out.npy", "--device", "cpu", "--quiet"]
    return ["predict", made.image_run, made.photos, *flags]


def _work(made: Ground, *, die_after: int = 0) -> None:
    """Three images at a time."""
    from dcdc.data import decoded
    from dcdc.engine import network_on_store
    from dcdc.runtime.journal import Appender

    decoded._BLOCK_ROWS = network_on_store.CHUNK = 3
    append = Appender.append

    def dying(self: Appender, *block: Any, **more: Any) -> None:
        append(self, *block, **more)
        if self._folder.n_read >= die_after:
            die()

    if die_after:
        Appender.append = dying
    run_verb(_arguments(made))


def _lay(made: Ground, place: Path, file: str, damage: Any, folder: Path) -> Any:
    work = folder / f"{_OUT}.partial"
    shutil.copytree(place, work)
    if callable(damage):
        in_place(work / file, damage)
    else:
        (work / file).write_bytes(damage)
    return partial(_work, made)


@lru_cache
def _killed() -> tuple[Path, dict[str, str]]:
    """What a kill after nine of twelve images left, and the answer of an undisturbed start."""
    made = ground()
    place = made.folder / "partial-prediction"
    with fresh_folder() as folder:
        ended = call(partial(_work, made, die_after=9), folder, cache=made.cache)
        assert ended.code == -9, ended.err
        (folder / f"{_OUT}.partial").rename(place)
    with fresh_folder() as folder:
        ended = call(partial(_work, made), folder, cache=made.cache)
        assert ended.code == 0, ended.err
        return place, _all_files(folder)

"""Damaged checkpoints and histories of a run that stopped: it goes on to the same answer, or not
at all."""

import shutil
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from campaign import answers
from campaign.case import Case, fresh_folder
from campaign.ground import Ground, ground
from campaign.mutations import (
    EDITED,
    NO_FILE,
    Damage,
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
from campaign.run_files import FEWER, tensors

_BELOW = tuple("run" + "/*" * depth for depth in range(1, 5))


def cases() -> Iterator[Case]:
    made = ground()
    newest = sorted((made.stopped_run / "checkpoint").iterdir())[-1]
    relative = newest.relative_to(made.stopped_run)
    for file, n in (("state.json", 100), ("tensors.safetensors", 24)):
        content = (newest / file).read_bytes()
        for words, changed in _damages(file, content, n):
            yield _case(made, str(relative / file), words, changed)
        for words, lay in NO_FILE.items():
            yield _case(made, str(relative / file), words, lay)
    for file in ("history.jsonl", "config.json"):
        content = (made.stopped_run / file).read_bytes()
        for words, changed in _damages(file, content, 20):
            yield _case(made, file, words, changed)
        for words, lay in NO_FILE.items():
            yield _case(made, file, words, lay)


def _damages(file: str, content: bytes, n: int) -> Iterator[Damage]:
    draw = drawing("stopped runs", file)
    yield from cut(content, 8)
    yield from flipped(content, n, draw)
    yield from overwritten(content, 4, draw)
    yield from replaced(content)
    if file.endswith((".json", ".jsonl")):
        yield from texts(content)
    if file == "state.json":
        yield from json_values(content, FEWER, depth=2)
    if file.endswith(".safetensors"):
        yield from tensors(content, every=5)


def _case(made: Ground, file: str, words: str, damage: Any) -> Case:
    return Case(
        name=f"{file} {words}",
        prepare=partial(_lay, made, file, damage),
        names=(file.rpartition("/")[2], "run"),
        answer=partial(_answer, file),
        wanted=None if words.endswith(EDITED) else undisturbed(file),
        makes=_BELOW,
        changes=_BELOW,
        cache=made.cache,
    )


def _lay(made: Ground, file: str, damage: Any, folder: Path) -> list[object]:
    shutil.copytree(made.stopped_run, folder / "run")
    target = folder / "run" / file
    if callable(damage):
        in_place(target, damage)
    elif damage is not None:
        target.write_bytes(damage)
    return ["fit", "--run", "run", "--resume", "--no-report", "--quiet"]


def _answer(file: str, folder: Path, ended: Ended) -> Any:  # noqa: ARG001
    return _without_history(file, _of_run(folder))


def _of_run(folder: Path) -> dict[str, Any]:
    found = answers.of_run(folder / "run")
    found["files"] = [name for name in found["files"] if not name.endswith("lock")]
    return found


def _without_history(file: str, found: dict[str, Any]) -> dict[str, Any]:
    """A history that is damaged is a record that is damaged: what the run answers is not."""
    told = file != "history.jsonl"
    return {key: value for key, value in found.items() if told or key != "history"}


def undisturbed(file: str) -> Any:
    return _without_history(file, _undamaged())


@lru_cache
def _undamaged() -> dict[str, Any]:
    made = ground()
    with fresh_folder() as folder:
        arguments = _lay(made, "history.jsonl", None, folder)
        ended = call(lambda: run_verb(arguments), folder, cache=made.cache, seconds=60)
        assert ended.code == 0, ended.err
        return _of_run(folder)

"""A kill, a full disk or a fault of the disk at every file operation of every verb that writes.

Afterwards the same verb again, or `--resume`, comes to the answer of an undisturbed start, and
nothing else lies there.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from campaign import answers
from campaign.case import fresh_folder
from campaign.file_operations import Disturbance, watch
from campaign.ground import FLAGS, IMAGE_FLAGS, Ground, ground
from campaign.process import Ended, call, run_verb

_SECONDS = 60.0


def _nothing(folder: Path) -> None:
    """An empty folder to begin in."""


def _no_matter(folder: Path) -> str:  # noqa: ARG001
    return ""


@dataclass(frozen=True)
class Verb:
    name: str
    work: Callable[[], object]
    """In the folder."""
    answer: Callable[[Path], Any]
    again: tuple[Callable[[], object], ...] = ()
    """What a person tries next, in turn; the same comes last."""
    lay: Callable[[Path], object] = _nothing
    meanwhile: Callable[[Path], str] = _no_matter
    """A fault of what a kill left, before anything is tried again."""
    every: int = 1
    """Of its operations each so-manieth is met."""
    below: str = ""
    """Where the others are met with another verb: only operations on paths that hold it."""
    own_cache: bool = False
    """Kept in the folder, and so met too."""
    of_several_runs: bool = False
    """A table of runs tells of each that failed, and ends with exit code 1."""


def _verb(*arguments: object) -> Callable[[], object]:
    return partial(run_verb, arguments)


def verbs() -> list[Verb]:
    made = ground()
    fit = ("fit", made.vectors, "--run", "run", *FLAGS, "--epochs", "2")
    resume = ("fit", "--run", "run", "--resume", "--no-report", "--quiet")
    predicting = ("predict", made.image_run, made.photos, "--device", "cpu", "--quiet")
    run_answer = partial(_of_run, "run")
    return [
        Verb("fit", _verb(*fit), run_answer, (_verb(*resume),)),
        Verb("fit --resume", _verb(*resume), run_answer, lay=partial(_copy, made.stopped_run)),
        Verb(
            "fit --overwrite",
            _verb(*fit, "--overwrite"),
            run_answer,
            lay=partial(_copy, made.vector_run),
            every=2,
        ),
        Verb(
            "fit, decoding into the cache",
            _verb("fit", made.photos, "--run", "run", *FLAGS, *IMAGE_FLAGS, "--epochs", "1"),
            partial(_of_run, "run"),
            (_verb(*resume),),
            own_cache=True,
            below="cache/",
        ),
        *(
            Verb(f"predict {suffix}", _verb(*predicting, "--out", f"out.{suffix}"), _all_files)
            for suffix in ("csv", "parquet", "jsonl")
        ),
        Verb(
            "predict with features and copies",
            _verb(*predicting, "--out", "out.csv", "--features", "out.npy", "--copy-to", "sorted"),
            _all_files,
        ),
        Verb(
            "predict, leaving out a bad image",
            _verb(
                "predict",
                made.image_run,
                "photos",
                "--out",
                "out.csv",
                "--on-bad",
                "skip",
                "--quiet",
            ),
            _all_files,
            lay=partial(_photos_and_a_bad_one, made),
        ),
        Verb(
            "features cache",
            partial(_stored_features, made),
            _cached,
            own_cache=True,
            below="cache/",
        ),
        Verb(
            "report",
            _verb("report", "run", "--quiet"),
            _names,
            lay=partial(_copy, made.vector_run),
            every=2,
        ),
        Verb(
            "report --names",
            _verb("report", "run", "--names", made.folder / "names.json", "--quiet"),
            _names,
            lay=partial(_without_names, made),
            below="names",
        ),
        Verb(
            "export",
            _verb("export", "run", "--format", "torch", "--out", "out.pt2"),
            _names,
            lay=partial(_copy, made.vector_run),
        ),
        Verb("save", partial(_save, made), _of_model),
        Verb(
            "save over an older model",
            partial(_save, made),
            _of_model,
            lay=partial(_older_model, made),
            meanwhile=partial(_old_or_new, made),
        ),
        Verb("compare", partial(_compare, made), _compared, of_several_runs=True),
        Verb(
            "reproduce",
            partial(_reproduce, made),
            _reproduced,
            every=6,
            of_several_runs=True,
        ),
    ]


@dataclass(frozen=True)
class Point:
    """One operation of a verb, and what meets it."""

    verb: Verb
    how: str
    number: int
    told: str

    @property
    def name(self) -> str:
        return f"{self.verb.name}: {self.how} at operation {self.number}, {self.told}"


def points(names: Sequence[str] = ()) -> Iterator[Point]:
    """A kill before every operation of these verbs, or of all; at every second one a full disk or a
    fault of the disk, too."""
    for verb in verbs():
        if names and verb.name not in names:
            continue
        operations = traced(verb.name)[0]
        met = [number for number, told in enumerate(operations) if verb.below in told]
        for place, number in enumerate(met[:: verb.every]):
            yield Point(verb, "kill", number, operations[number])
            if place % 2 == 0:
                fault = ("ENOSPC", "EIO")[place % 4 // 2]
                yield Point(verb, fault, number, operations[number])


@lru_cache
def traced(name: str) -> tuple[tuple[str, ...], Any]:
    """The operations of an undisturbed start, and its answer."""
    verb = next(verb for verb in verbs() if verb.name == name)
    with fresh_folder() as folder:
        verb.lay(folder)
        log = folder.parent / "operations"
        log.touch()

        def tell(kind: str, path: str) -> bool:
            os.write(number, f"{kind} {path}\n".encode())
            return False

        number = os.open(log, os.O_WRONLY | os.O_APPEND)

        def work() -> None:
            watch(folder, tell)
            verb.work()

        ended = _carried_out(verb, work, folder)
        os.close(number)
        assert ended.code == 0, (name, ended.code, ended.err)
        operations = re.sub(r"\.\d+(-\w+)?\.partial", ".PID.partial", log.read_text())
        return tuple(operations.splitlines()), _found(verb, folder)


def fault_of(point: Point) -> str:
    verb, wanted = point.verb, traced(point.verb.name)[1]
    with fresh_folder() as folder:
        verb.lay(folder)

        def work() -> None:
            watch(folder, Disturbance(point.how, point.number))
            verb.work()

        ended = _carried_out(verb, work, folder)
        fault = _fault_of_end(point, ended) or verb.meanwhile(folder)
        if fault:
            return fault
        tries = []
        for again in (None, *verb.again, verb.work):
            if again is not None:
                ended = _carried_out(verb, again, folder)
                tries.append(f"{ended.code}: {ended.err.strip()[-200:]}")
            if ended.hung or "Traceback" in ended.err:
                return f"again: hang or traceback: {ended.err[-300:]}"
            if _found(verb, folder) == wanted and (ended.code == 0 or again is verb.work):
                return ""
        return f"not the same answer afterwards: {_difference(verb, folder, wanted)}; {tries}"


def _fault_of_end(point: Point, ended: Ended) -> str:
    if ended.hung:
        return "hang"
    if point.how == "kill":
        return "" if ended.code in (0, -9) else f"exit code {ended.code}: {ended.err[-300:]}"
    if "Traceback" in ended.err:
        return f"traceback: {ended.err.strip().splitlines()[-1]}"
    if point.verb.of_several_runs and ended.code in (1, 2):
        return ""
    if ended.code not in (0, 2):
        return f"exit code {ended.code}: {ended.err[-300:]}"
    n_lines = len(ended.err.splitlines())
    return "" if ended.code == 0 or n_lines == 1 else f"{n_lines} lines: {ended.err[-300:]}"


def _carried_out(verb: Verb, work: Callable[[], object], folder: Path) -> Ended:
    cache = folder / "cache" if verb.own_cache else ground().cache
    return call(work, folder, cache=cache, seconds=_SECONDS)


def _found(verb: Verb, folder: Path) -> Any:
    """The answer, and every file that lies there; nothing where it cannot be read."""
    try:
        return verb.answer(folder), _visible(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _visible(folder: Path) -> list[str]:
    """All but locks: one whose owner is dead is known for what it is."""
    return [name for name in answers.files_below(folder) if not name.endswith("lock")]


def _difference(verb: Verb, folder: Path, wanted: Any) -> str:
    found = _found(verb, folder)
    if isinstance(found, str):
        return found
    files, others = set(found[1]), set(wanted[1])
    if files != others:
        return f"too many: {sorted(files - others)[:5]}, missing: {sorted(others - files)[:5]}"
    return "other content"


def _copy(run: Path, folder: Path) -> None:
    shutil.copytree(run, folder / "run")


def _of_run(name: str, folder: Path) -> Any:
    found = answers.of_run(folder / name)
    del found["files"]
    return found


def _all_files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _names(folder: Path) -> list[str]:
    """Content differs by dates and paths."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and not path.stat().st_size]


def _photos_and_a_bad_one(made: Ground, folder: Path) -> None:
    shutil.copytree(made.photos / "kind-0", folder / "photos")
    (folder / "photos" / "bad.png").write_bytes(b"no image")


def _stored_features(made: Ground) -> None:
    import dcdc
    from dcdc.cli.faults import exit_codes
    from dcdc.data import load_images
    from dcdc.prepare.stored_features import stored_features

    with exit_codes():
        stored_features(dcdc.load(made.image_run, "cpu"), load_images(made.photos, size=8))


def _cached(folder: Path) -> list[bytes]:
    found = sorted((folder / "cache" / "decoded").glob("*/rows"))
    return [path.read_bytes() for path in found]


def _without_names(made: Ground, folder: Path) -> None:
    _copy(made.vector_run, folder)
    (folder / "run" / "names.json").unlink()


def _save(made: Ground) -> None:
    import dcdc
    from dcdc.cli.faults import exit_codes

    model = dcdc.load(made.vector_run, "cpu")
    with exit_codes():
        model.save("model")


def _of_model(folder: Path) -> Any:
    """What a model folder answers, with its names."""

    def tell() -> None:
        import dcdc

        model = dcdc.load(folder / "model", "cpu")
        weights = b"".join(
            tensor.numpy().tobytes() for _, tensor in sorted(model.network.state_dict().items())
        )
        print(hashlib.sha256(weights).hexdigest(), model.names, model.config["train"]["seed"])

    ended = call(tell, folder, seconds=_SECONDS)
    return ended.out if ended.code == 0 else ended.err.splitlines()[-1][:60]


@lru_cache
def _older() -> Path:
    """A model of another seed, with other names."""
    made = ground()
    run, model = made.folder / "older-run", made.folder / "older-model"
    fit = ["fit", made.vectors, "--run", run, *FLAGS, "--epochs", "1", "--seed", "5"]
    ended = call(_verb(*fit), made.folder, cache=made.cache, seconds=_SECONDS)
    assert ended.code == 0, ended.err

    def save() -> None:
        import dcdc

        found = dcdc.load(run, "cpu")
        found.names = {1: "older"}
        found.save(model)

    assert call(save, made.folder, cache=made.cache, seconds=_SECONDS).code == 0
    return model


def _older_model(made: Ground, folder: Path) -> None:  # noqa: ARG001
    shutil.copytree(_older(), folder / "model")


@lru_cache
def _both_models() -> tuple[Any, Any]:
    found = []
    for model in (_older(), ground().model):
        with fresh_folder() as folder:
            shutil.copytree(model, folder / "model")
            found.append(_of_model(folder))
    return found[0], found[1]


def _old_or_new(made: Ground, folder: Path) -> str:  # noqa: ARG001
    found = _of_model(folder)
    if found in _both_models() or "InputError" in found:
        return ""
    return f"a mixture of two models loads: {found}"


def _compare(made: Ground) -> None:
    """Runs in this process, not in processes of their own: their operations count too."""
    from dcdc.engine.observer import SilentObserver
    from dcdc.experiments import method_process
    from dcdc.experiments.method_child import carry_out

    method_process.Children.work = lambda self, run, begun: carry_out(  # noqa: ARG005
        run.job(), SilentObserver()
    )
    flags = ["--methods", "k-means,turtle", "--out", "out", "--device", "cpu", "--quiet"]
    run_verb(["compare", made.vectors, *flags, "--set", "turtle.n_steps=3"])


def _compared(folder: Path) -> Any:
    return {
        str(path.relative_to(folder)): pq.read_table(path).to_pydict()
        for path in folder.rglob("assignments.parquet")
    }


def _reproduce(made: Ground) -> None:
    small = ["network.backbone=small", "data.size=8", "n_clusters=3", "network.mean=none"]
    small += ["network.std=none", "augment.resize_to=10", "train.threads=1", "heads.batch_size=6"]
    small += ["network.over_clusters=6", "train.checkpoint_every=1"]
    settings = [text for value in small for text in ("--set", value)]
    which = ["--dataset", "cifar100-20", "--data", f"cifar100-20={made.photos}", "--epochs", "1"]
    flags = ["--device", "cpu", "--out", "out", "--no-report", "--quiet"]
    run_verb(["reproduce", "repeat", *which, *settings, *flags])


def _reproduced(folder: Path) -> Any:
    found = {}
    for path in folder.rglob("metrics.json"):
        run = _of_run(str(path.parent.relative_to(folder)), folder)
        found[str(path.parent.relative_to(folder))] = run
    return found

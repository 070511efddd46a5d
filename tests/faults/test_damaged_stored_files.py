"""Files of real runs, caches and predictions, damaged in every way that we know of.

Whatever reads them answers as before, makes again what it can, or says in one line what is wrong.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dcdc
from dcdc.data import load_images
from dcdc.engine.checkpoints import list_checkpoints, load_latest
from dcdc.engine.edits import Edits, RunAnswers
from dcdc.engine.taught import taught_by, write_taught
from dcdc.errors import InputError
from dcdc.prediction.answers import images_for
from dcdc.prediction.session import predict_to_file
from dcdc.report.facts import read_facts, read_sample
from dcdc.report.map_layout import layout_of
from dcdc.run import run
from dcdc.run_folder import RunFolder
from dcdc.stored import files
from dcdc.stored.files import STORED_FILES

SECONDS = 10


@contextmanager
def no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"it hangs: nothing came for {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def kept(tiny_config, tiny_set, tmp_path_factory) -> Path:
    """A finished run with all that a run folder may hold."""
    folder = RunFolder.create(tmp_path_factory.mktemp("stored") / "run")
    run(tiny_config, tiny_set, folder=folder)
    folder.write_names({0: "stripes", 2: "Hühner"})
    folder.write_skipped([("bad, worse.jpg", "cut short")])
    folder.write_number({"number": 3, "is_settled": True, "strengths": {"3": 1}, "runners_up": []})
    of_run = given(folder)
    moved = {"kind": "move", "images": [[3, of_run.names[3]]], "to": 1}
    named = {"kind": "name", "cluster": 1, "name": "Küken"}
    made = Edits(of_run.digest, (moved, named))
    folder.write_edits(made)
    write_taught(folder.taught_file, taught_by(made, of_run, source="before"))
    saved = dcdc.load(folder.path).save(folder.path.parent / "model")
    shutil.copy(saved / "reference.npz", folder.path)
    folder.write_features(np.random.default_rng(0).normal(size=(20, 6)).astype(np.float16))
    layout_of(folder, read_sample(folder), seed=0)()
    folder.search.mkdir()
    search = files.SEARCH.text({"n_clusters": 10, "lowest": 3, "highest": 30})
    (folder.search / files.SEARCH.name).write_text(search)
    return folder.path


@pytest.fixture
def folder(kept, tmp_path) -> RunFolder:
    shutil.copytree(kept, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def answers(folder: RunFolder) -> Any:
    images = np.arange(5 * 64, dtype=np.uint8).reshape(5, 8, 8)
    return dcdc.load(folder.path, device="cpu").predict_proba(images).tolist()


def facts(folder: RunFolder) -> Any:
    found = read_facts(folder)
    return {
        **{"metrics": found.metrics, "history": found.history, "names": found.names},
        **{"assignments": found.assignments.tolist(), "skipped": found.skipped},
        **{
            "number": found.number,
            "called": dict(found.cluster_names),
            "targets": found.targets.tolist(),
        },
    }


def given(folder: RunFolder) -> RunAnswers:
    table = folder.read_assignments()
    return RunAnswers(table["name"].to_pylist(), table["cluster"].to_numpy(), 3)


def edits(folder: RunFolder) -> Any:
    return folder.read_edits(given(folder))


def taught(folder: RunFolder) -> Any:
    found = vars(folder.read_taught())
    return {name: np.asarray(found[name]).tolist() for name in found if name != "counts"}


def sample(folder: RunFolder) -> Any:
    return {name: array.tolist() for name, array in vars(read_sample(folder)).items()}


def layout(folder: RunFolder) -> Any:
    found = layout_of(folder, read_sample(folder), seed=0)()
    return {name: plane.tolist() for name, plane in found.items()}


def features(folder: RunFolder) -> Any:
    return [block.tolist() for block in folder.read_features(7, n_images=20)]


def reference(folder: RunFolder) -> Any:
    return folder.read_training_features(256).tolist()


def search(folder: RunFolder) -> Any:
    found = folder.read_search()
    return found["n_clusters"], found["lowest"], found["highest"]


def checkpoint(folder: RunFolder) -> Any:
    """The newest that is whole: an older one, where that is damaged."""
    warnings: list[str] = []
    found = load_latest(folder.path / "checkpoint", warnings.append)
    sums = {name: float(tensor.double().sum()) for name, tensor in found.tensors.items()}
    assert len(warnings) == 4 - found.epoch
    assert all(len(warning.splitlines()) == 1 for warning in warnings)
    return found.epoch, found.step, found.extra, sums


@dataclass(frozen=True)
class Case:
    read: Callable[[RunFolder], Any]
    made_again: bool = False
    is_prefix_good: bool = False
    """A kill may cut it short: what comes before is then the answer."""


CASES = {
    "config.json": Case(answers),
    "model.safetensors": Case(answers),
    "metrics.json": Case(facts),
    "history.jsonl": Case(facts, is_prefix_good=True),
    "names.json": Case(facts),
    "edits.json": Case(edits),
    "taught.npz": Case(taught),
    "skipped.csv": Case(facts),
    "assignments.parquet": Case(facts),
    "sample.npz": Case(sample),
    "features.npz": Case(features),
    "reference.npz": Case(reference),
    "map.npz": Case(layout, made_again=True),
    "number.json": Case(facts),
    "hierarchy.json": Case(RunFolder.read_hierarchy),
    "search/search.json": Case(search),
}


def test_every_file_that_is_read_back_is_among_these():
    elsewhere = {"KEY.note", "done", "journal", "journal, its first line", "whole"}
    elsewhere.add("backbone/*.json")  # tests/test_kept_backbones.py
    named = {Path(name).name for name in CASES}
    assert {*STORED_FILES, "model.safetensors"} == {*named, "state.json", *elsewhere}


def half(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "half": half,
    "zeros": lambda whole: bytes(len(whole)),
    "UTF-16": lambda whole: whole.decode("latin-1").encode("utf-16"),
    "byte order mark": lambda whole: b"\xef\xbb\xbf" + whole,
    "Latin-1": lambda whole: b'{"f\xfcr": 1}' + whole,
    "null": lambda _: b"null\n",
    "an empty object": lambda _: b"{}\n",
    "a list": lambda _: b"[1, 2]\n",
    "NaN": lambda _: b'{"n_clusters": NaN, "epoch": NaN}\n',
    "deep": lambda _: b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    "digits": lambda _: b'{"n_clusters": ' + b"9" * 5000 + b"}\n",
    "petabytes": lambda _: (2**50).to_bytes(8, "little") + b'{"a": 1}',
    "another zip": lambda _: b"PK\x05\x06" + bytes(18),
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


PLACES: dict[str, Callable[[Path], None]] = {"pipe": pipe, "device": device, "folder": Path.mkdir}


def check(case: Case, folder: RunFolder, name: str, expected: Any) -> bool:
    """Whether it answered."""
    try:
        with no_hang():
            found = case.read(folder)
    except InputError as error:
        told = str(error)
        if case.made_again or name not in told or len(told.splitlines()) != 1 or len(told) > 600:
            raise AssertionError(told) from error
        return False
    assert found == expected
    return True


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_one_line_or_made_again(folder, name):
    case, path = CASES[name], folder.path / name
    expected, whole = case.read(folder), path.read_bytes()
    for fault, change in CONTENTS.items():
        path.write_bytes(change(whole))
        if fault == "half" and case.is_prefix_good:
            assert case.read(folder) != expected
        elif fault == "nothing" and case.is_prefix_good:
            assert case.read(folder)["history"] == []
        else:
            # Before a zip file anything may stand.
            has_all = path.suffix == ".npz" and change(whole).endswith(whole)
            may_answer = case.made_again or has_all
            assert check(case, folder, name, expected) == may_answer, fault
    for fault, place in PLACES.items():
        if case.made_again and fault == "folder":
            continue  # nothing of ours is removed to make room
        path.unlink()
        place(path)
        if name == "config.json":
            with pytest.raises(InputError, match="is not a run folder"):
                case.read(folder)
        else:
            assert check(case, folder, name, expected) == case.made_again, fault
        path.rmdir() if path.is_dir() else path.unlink()
        path.write_bytes(whole)


def every_bit(content: bytes, step: int) -> Iterator[bytes]:
    for at in range(0, 8 * len(content), step):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        yield bytes(flipped)


SAMPLED = [
    pytest.param(40, id="some"),
    pytest.param(1, id="all", marks=pytest.mark.slow),
]
SMALL = (
    *("metrics.json", "history.jsonl", "names.json", "edits.json", "assignments.parquet"),
    *("number.json", "hierarchy.json", "search/search.json"),
)


@pytest.mark.parametrize("some", SAMPLED)
@pytest.mark.parametrize("name", SMALL)
def test_no_flipped_bit_changes_what_is_read(folder, name, some):
    case, path = CASES[name], folder.path / name
    expected, whole = case.read(folder), path.read_bytes()
    step = some * len(whole) // 100 + 1 if some > 1 else 1
    n_told = 0
    for content in every_bit(whole, step):
        path.write_bytes(content)
        try:
            found = case.read(folder)
        except InputError as error:
            n_told += 1
            if name not in str(error) or len(str(error).splitlines()) != 1:
                raise AssertionError(str(error)) from error
            continue
        # A flipped bit of the word "checksum" makes a key of its own, which nobody reads.
        if name in ("metrics.json", "number.json"):
            told = name.partition(".")[0]
            found[told] = {key: found[told].get(key) for key in expected[told]}
        if name == "history.jsonl":
            keys = expected["history"][-1]
            found["history"] = [{k: line[k] for k in keys} for line in found["history"]]
        assert found == expected
    assert n_told


@pytest.mark.parametrize("some", SAMPLED)
def test_no_flipped_bit_of_the_weights_changes_an_answer(folder, some):
    expected, whole = answers(folder), folder.model_file.read_bytes()
    n_told = 0
    for content in every_bit(whole, 8 * len(whole) // 12 + 1 if some > 1 else 4099):
        folder.model_file.write_bytes(content)
        try:
            assert answers(folder) == expected
        except InputError as error:
            assert "model.safetensors" in str(error)  # noqa: PT017
            n_told += 1
    assert n_told


def test_settings_that_the_weights_were_not_trained_with_are_refused(folder):
    """A single bit makes 8 pixels of 9, and every answer another."""
    content = json.loads(folder.config_file.read_text())
    for section, key, value in (
        *(("data", "size", 9), ("network", "sobel", True), ("augment", "resize_to", 16)),
    ):
        changed = {**content, section: {**content[section], key: value}}
        folder.config_file.write_text(json.dumps(changed))
        with pytest.raises(InputError, match=f"config.json has {section}.{key} = {value}, its mod"):
            dcdc.load(folder.path)
    moved = {**content, "data": {**content["data"], "source": "elsewhere.npz"}}
    folder.config_file.write_text(json.dumps(moved))
    assert dcdc.load(folder.path).n_clusters == 3


@pytest.mark.parametrize("some", SAMPLED)
def test_a_damaged_checkpoint_is_passed_over_whatever_bit_it_is(folder, some):
    newest, before = list_checkpoints(folder.path / "checkpoint")[-1:-3:-1]
    expected = checkpoint(folder)
    moved = newest.rename(folder.path / "newest")
    older = load_latest(folder.path / "checkpoint", pytest.fail)
    assert older.epoch == expected[0] - 1
    moved.rename(newest)
    state = newest / "state.json"
    whole = state.read_bytes()
    for content in every_bit(whole, some * 5 if some > 1 else 1):
        state.write_bytes(content)
        found = checkpoint(folder)
        assert found == expected or found[0] == older.epoch
    for change in CONTENTS.values():
        state.write_bytes(change(whole))
        assert checkpoint(folder)[0] == older.epoch
    state.write_bytes(whole)
    for name in ("state.json", "tensors.safetensors"):
        content = (newest / name).read_bytes()
        for place in PLACES.values():
            (newest / name).unlink()
            place(newest / name)
            with no_hang():
                assert checkpoint(folder)[0] == older.epoch
            shutil.rmtree(newest / name) if (newest / name).is_dir() else (newest / name).unlink()
            (newest / name).write_bytes(content)
    assert checkpoint(folder) == expected
    assert before.exists()


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for number in range(20):
        pixels = random.integers(0, 256, (16, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
    (folder / "torn.png").write_bytes(b"\x89PNG torn")
    return folder


@pytest.mark.parametrize("some", SAMPLED)
def test_a_damaged_cache_is_made_again(photos, tmp_path, monkeypatch, some):
    """Note, stamp and journal: the images, and the list of those left out, are as they were."""
    monkeypatch.setenv("DCDC_DATA", str(tmp_path))

    def read() -> Any:
        found = load_images(photos, on_bad="skip")
        return found.images.tolist(), found.names, found.skipped

    expected = read()
    (cached,) = (path for path in (tmp_path / "decoded").iterdir() if path.is_dir())
    (note,) = (tmp_path / "decoded").glob("*.note")
    for path in (note, cached / "done", cached / "journal"):
        whole = path.read_bytes()
        contents = [*every_bit(whole, len(whole) // 2 if some > 1 else 1)]
        for content in (*contents, *(change(whole) for change in CONTENTS.values())):
            path.write_bytes(content)
            with no_hang():
                assert read() == expected
            path.write_bytes(whole)
    for path in (note, cached / "done", cached / "journal", cached / "rows"):
        for place in (pipe, device):
            path.unlink()
            place(path)
            with no_hang():
                assert read() == expected
            assert path.is_file()


@pytest.mark.parametrize("some", SAMPLED)
def test_a_damaged_journal_of_a_prediction_costs_no_right_answer(kept, tmp_path, monkeypatch, some):
    """Stopped before its last step, when all rows are there: it answers as ever, or refuses."""
    model = dcdc.load(kept, device="cpu")
    monkeypatch.setattr("dcdc.engine.network_on_store.CHUNK", 8)
    images = np.arange(20 * 64).reshape(20, 8, 8).astype(np.uint8)
    np.save(tmp_path / "images.npy", images)
    predict = partial(predict_to_file, model, images_for(model, tmp_path / "images.npy"))
    predict(tmp_path / "good.csv")
    expected = (tmp_path / "good.csv").read_bytes()

    class KilledError(Exception):
        pass

    def kill(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("dcdc.prediction.session._publish", kill)
        with pytest.raises(KilledError):
            predict(tmp_path / "out.csv")
    work = tmp_path / "out.csv.partial"
    assert (work / "whole").exists()
    shutil.copytree(work, tmp_path / "kept")
    for name in ("journal", "whole", "rows"):
        whole = (tmp_path / "kept" / name).read_bytes()
        step = len(whole) + 1 if some > 1 else {"journal": 11, "whole": 1, "rows": 997}[name]
        contents = [*every_bit(whole, step), half(whole), b"", b"{}\n"]
        for content in contents:
            shutil.rmtree(work, ignore_errors=True)
            (tmp_path / "out.csv").unlink(missing_ok=True)
            shutil.copytree(tmp_path / "kept", work)
            (work / name).write_bytes(content)
            with no_hang():
                predict(tmp_path / "out.csv")
            assert (tmp_path / "out.csv").read_bytes() == expected

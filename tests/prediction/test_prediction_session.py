"""A prediction stopped anywhere goes on, and ends byte for byte as an undisturbed one."""

import csv
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dcdc.engine.interruption import Interruption
from dcdc.errors import InputError
from dcdc.prediction import session, work_folder
from dcdc.prediction.answers import images_for
from dcdc.prediction.session import PredictionStopped, predict_to_file
from dcdc.prediction.sorting import Sorting
from dcdc.runtime import journal

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture
def predicted(model, photos, tmp_path):
    def call(out, **how):
        target = tmp_path / out
        features = target.with_suffix(".npy")
        return predict_to_file(model, images_for(model, photos), target, features=features, **how)

    return call


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "photos" not in path.parts
    }


@pytest.fixture(params=[".csv", ".parquet"])
def out(request):
    return f"made/out{request.param}"


def wanted(predicted, tmp_path, out, **how):
    """What an undisturbed call leaves, under the same name."""
    done = predicted(out, **how)
    found = files(tmp_path / "made")
    for name in found:
        (tmp_path / "made" / name).unlink()
    return done, found


def test_rows_and_features_line_up(predicted, model, photos, tmp_path):
    done = predicted("out.csv")
    assert (done.n_images, done.skipped, done.sorted) == (48, (), None)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (
        done.n_out_of_distribution == sum(row["out_of_distribution"] == "true" for row in rows) >= 1
    )
    features = np.load(tmp_path / "out.npy")
    assert (features.shape, features.dtype) == ((48, 256), np.float32)
    from PIL import Image

    for index in (0, 17, 47):
        pixels = np.asarray(Image.open(photos / rows[index]["name"]))[None]
        assert np.allclose(model.transform(pixels)[0], features[index], atol=1e-5)
        assert model.predict(pixels)[0] == int(rows[index]["cluster"])
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "out.csv", "out.npy"}


def test_the_formats_say_the_same(predicted, tmp_path):
    for suffix in ("csv", "parquet", "jsonl"):
        predicted(f"{suffix}.{suffix}")
    table = pq.read_table(tmp_path / "parquet.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "jsonl.jsonl").read_text().splitlines()]
    with (tmp_path / "csv.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(lines[0]) == list(table[0])
    for row, line, entry in zip(rows, lines, table, strict=True):
        for name, value in entry.items():
            if isinstance(value, float):
                assert np.float32(value) == np.float32(line[name]) == np.float32(row[name])
            else:
                assert value == line[name]
                assert str(value).lower() == row[name].lower()


@pytest.fixture
def exit_code(forked):
    """Of a real process that runs a call."""

    def run(call) -> int:
        process = forked(call)
        process.join(60)
        return process.exitcode

    return run


@pytest.mark.parametrize("at", range(4, 17, 3))
def test_killed_with_a_write_half_done_it_goes_on(
    predicted, out, at, exit_code, tmp_path, monkeypatch
):
    """The process kills itself in the middle of its n-th write: of a part, or of a journal line."""
    undisturbed, before = wanted(predicted, tmp_path, out)
    whole, writes = journal._write, 0

    def half(file, content):
        nonlocal writes
        writes += 1
        if writes == at:
            file.write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        whole(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_write", half)
        assert exit_code(lambda: predicted(out)) == -signal.SIGKILL
    assert not (tmp_path / out).exists()
    kept = []
    assert predicted(out, on_kept=kept.append) == undisturbed
    n_blocks = (at - 4) // 4  # three heads, then three parts and a line for each block
    assert kept == ([10 * n_blocks] if n_blocks else [])
    assert files(tmp_path / "made") == before


STEPS = (
    "dcdc.prediction.session.sort_files",
    "dcdc.prediction.session.npy_header",
    "dcdc.prediction.session.place",
    "dcdc.prediction.session.write_text",
    "dcdc.prediction.work_folder.WorkFolder.finish",
    "dcdc.prediction.work_folder.WorkFolder.remove_as",
    "dcdc.prediction.work_folder.remove_done",
)


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.rpartition(".")[2])
def test_killed_while_files_are_put_in_place_it_goes_on(
    predicted, photos, out, step, when, exit_code, tmp_path, monkeypatch
):
    (photos / "kind-1" / "01.png").write_bytes(b"torn")
    how = {"on_bad": "skip", "sorting": Sorting(tmp_path / "made" / "sorted")}
    undisturbed, before = wanted(predicted, tmp_path, out, **how)
    assert len(before) == 3 + 47
    import importlib

    module, _, name = step.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        owner = work_folder.WorkFolder
    whole, calls = getattr(owner, name), 0

    def killing(*arguments, **options):
        nonlocal calls
        calls += 1
        last = calls == (2 if name == "npy_header" else 1)  # the first one begins the file
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = whole(*arguments, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killing)
        assert exit_code(lambda: predicted(out, **how)) == -signal.SIGKILL
    if name == "remove_done" and when == "before":
        assert predicted(out, **how).n_images is None  # only clearing up was left
    elif name not in ("remove_as", "remove_done") or when == "before":
        again = predicted(out, **how)
        assert again.n_images == undisturbed.n_images == 47
        assert again.sorted.n_placed + again.sorted.n_there == 47
        assert again.skipped_file == undisturbed.skipped_file
    assert files(tmp_path / "made") == before


def test_a_stop_is_heard_between_two_blocks(predicted, out, tmp_path):
    undisturbed, before = wanted(predicted, tmp_path, out)

    def raise_signal(_what, done, _total):
        if done == 20:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(PredictionStopped, match="stopped by SIGTERM: 20 of 48 images are kept"):
        predicted(out, progress=raise_signal)
    assert not (tmp_path / out).exists()
    assert predicted(out) == undisturbed
    assert files(tmp_path / "made") == before


def test_a_stop_while_files_are_sorted_is_heard_too(predicted, tmp_path):
    def raise_signal(what, done, _total):
        if what == "sorting files" and done == 20:
            signal.raise_signal(signal.SIGINT)

    how = {"sorting": Sorting(tmp_path / "sorted", by_link=True)}
    with pytest.raises(PredictionStopped, match="20 of 48 files are sorted"):
        predicted("out.csv", progress=raise_signal, **how)
    done = predicted("out.csv", **how)
    assert (done.sorted.n_placed, done.sorted.n_there) == (28, 20)


def stopped_after(predicted, out, rows, **how):
    def stop(_what, done, _total):
        if done >= rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predicted(out, progress=stop, **how)


def test_other_images_or_another_model_do_not_go_on(predicted, model, photos, tmp_path):
    stopped_after(predicted, "out.csv", 20)
    before = files(tmp_path)
    os.utime(photos / "kind-0" / "00.png", (1, 1))
    with pytest.raises(InputError, match=r"out.csv.partial .* with other images or another"):
        predicted("out.csv")
    model.names = {0: "cats"}
    with pytest.raises(InputError, match="another model and other images"):
        predicted("out.csv")
    assert files(tmp_path) == before


def test_without_features_is_another_thing(model, photos, predicted, tmp_path):
    stopped_after(predicted, "out.csv", 20)
    with pytest.raises(InputError, match="another choice of features"):
        predict_to_file(model, images_for(model, photos), tmp_path / "out.csv")


def test_files_may_be_sorted_as_an_afterthought(predicted, tmp_path):
    stopped_after(predicted, "out.csv", 20)
    done = predicted("out.csv", sorting=Sorting(tmp_path / "sorted"))
    assert done.sorted.n_placed == 48


def test_a_bad_image_stops_and_skipping_it_goes_on(predicted, photos, tmp_path):
    (photos / "kind-2" / "02.png").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"cannot read image kind-2/02.png .*use on_bad = 'skip'"):
        predicted("out.csv")
    kept = []
    done = predicted("out.csv", on_bad="skip", on_kept=kept.append)
    assert kept == [30]
    assert [skipped.name for skipped in done.skipped] == ["kind-2/02.png"]
    assert done.n_images == len(np.load(tmp_path / "out.npy")) == 47
    with done.skipped_file.open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["kind-2/02.png"]
    assert done.skipped_file == tmp_path / "out.skipped.csv"


def test_an_image_skipped_before_is_refused_where_none_may_be(predicted, photos):
    (photos / "kind-0" / "00.png").write_bytes(b"torn")
    stopped_after(predicted, "out.csv", 20, on_bad="skip")
    with pytest.raises(InputError, match=r"cannot read image kind-0/00.png"):
        predicted("out.csv")


def test_a_bad_image_in_the_first_block_leaves_nothing(predicted, photos, tmp_path):
    (photos / "kind-0" / "00.png").write_bytes(b"torn")
    with pytest.raises(InputError, match="cannot read image"):
        predicted("out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_a_folder_without_a_good_image_leaves_nothing(predicted, photos, tmp_path):
    for file in photos.rglob("*.png"):
        file.write_bytes(b"torn")
    with pytest.raises(InputError, match=r"none of the 48 images in .* can be read"):
        predicted("out.csv", on_bad="skip")
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_a_file_that_came_to_be_meanwhile_is_not_overwritten(predicted, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        write = session._sort

        def quick(*arguments):
            (tmp_path / "out.csv").write_text("mine")
            return write(*arguments)

        patch.setattr(session, "_sort", quick)
        with pytest.raises(InputError, match=r"out.csv has come to be meanwhile"):
            predicted("out.csv", sorting=Sorting(tmp_path / "sorted"))
    assert (tmp_path / "out.csv").read_text() == "mine"
    (tmp_path / "out.csv").unlink()
    assert predicted("out.csv").n_images == 48


def test_a_table_is_not_put_where_it_would_be_read_as_images(model, photos):
    for place in (photos, photos / "kind-0"):
        with pytest.raises(InputError, match="would be read as images"):
            predict_to_file(model, images_for(model, photos), place / "out.parquet")
    predict_to_file(model, images_for(model, photos), photos / "out.csv")


def test_signals_are_ours_only_while_we_work(predicted):
    before = signal.getsignal(signal.SIGTERM)
    predicted("out.csv")
    assert signal.getsignal(signal.SIGTERM) is before
    assert Interruption().wanted is None


@pytest.mark.parametrize("at", ["answering", "publishing"])
def test_work_that_is_taken_away_is_no_success(predicted, out, at, tmp_path, monkeypatch):
    """And the same command, left alone, ends well."""
    work = tmp_path / f"{out}.partial"

    def take_away(_what="", done=1, _total=1):
        if done:
            shutil.rmtree(work, ignore_errors=True)

    with monkeypatch.context() as patch:
        if at == "answering":
            how = {"progress": take_away}
        else:
            finish = work_folder.WorkFolder.finish
            patch.setattr(
                work_folder.WorkFolder, "finish", lambda own: (finish(own), take_away())[0]
            )
            how = {}
        with pytest.raises(InputError, match=r"was removed or changed while .* start again"):
            predicted(out, **how)
    assert not list((tmp_path / "made").glob("*"))
    assert predicted(out).n_images == 48


def test_half_a_list_of_what_was_skipped_never_lies_beside(
    predicted, photos, out, exit_code, tmp_path, monkeypatch
):
    (photos / "kind-1" / "01.png").write_bytes(b"torn")

    def killed(path, text):
        path.write_text(text[: len(text) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(session, "write_text", killed)
        assert exit_code(lambda: predicted(out, on_bad="skip")) == -signal.SIGKILL
    assert not list((tmp_path / "made").glob("*skipped*"))
    assert not list((tmp_path / "made").glob(".*"))
    assert predicted(out, on_bad="skip").n_images == 47

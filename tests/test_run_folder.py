import json
import shutil
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from dcdc.cli.words import COMMAND_LINE
from dcdc.errors import InputError
from dcdc.run_folder import RUN_FOLDER, RunFolder
from dcdc.runtime.atomic_files import is_leftover
from dcdc.runtime.folder_lock import LOCK
from kills import killed_before, watched

CONFIG = {"n_clusters": 3, "data": {}, "network": {}, "augment": {}, "train": {}}


def whole_run(path: Path) -> RunFolder:
    """Every file that a run may write, in name."""
    folder = RunFolder(path)
    folder.write_config(CONFIG)
    (path / "names.json").write_text('{"format": 1, "clusters": {}}')
    for pattern in RUN_FOLDER.patterns:
        file = path / pattern.replace("*", "00003-step-000000")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text("old")
    return folder


def contents(path: Path) -> dict[str, str]:
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_text() for file in files}


def test_a_folder_that_exists_is_refused_with_the_ways_out(tmp_path):
    (tmp_path / "run").mkdir()
    folder = RunFolder.create(tmp_path / "run")  # empty is as good as new
    folder.write_config({"n_clusters": 3})
    with pytest.raises(InputError) as caught:
        RunFolder.create(folder.path)
    ways = "go on with it by --resume, replace it by --overwrite, or choose another by --run"
    assert caught.value.told(COMMAND_LINE) == f"run folder {folder.path} exists: {ways}"


def test_overwriting_replaces_a_run_but_nothing_else(tmp_path):
    old = whole_run(tmp_path / "run")
    before = contents(old.path)
    new = RunFolder.create(old.path, overwrite=True)
    assert contents(old.path) == before  # until nothing can refuse the run any more
    with new.writing():
        new.begin({"n_clusters": 4})
    assert list(contents(old.path)) == ["config.json"]
    assert new.read_config() == {"n_clusters": 4}
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder, so it is not overwritten"):
        RunFolder.create(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder"):
        RunFolder.create(tmp_path / "file", overwrite=True)


@pytest.mark.parametrize(
    "name",
    ["thesis.txt", "checkpoint/notes.txt", "figures/cat.jpg", "notes/", ".git/config", "run/x"],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_that_no_run_wrote_is_named_and_kept(tmp_path, name, is_link):
    path = whole_run(tmp_path / "run").path
    mine = path / name
    mine.parent.mkdir(exist_ok=True)
    if name.endswith("/"):
        mine.mkdir()
    elif is_link:
        (tmp_path / "elsewhere").write_text("mine")
        mine.symlink_to(tmp_path / "elsewhere")
    else:
        mine.write_text("mine")
    before = contents(path)
    told = rf"run holds {name.partition('/')[0]}.*, which no run wrote, so it is not overwritten"
    with pytest.raises(InputError, match=told):
        RunFolder.create(path, overwrite=True)
    assert contents(path) == before
    if not name.endswith("/"):
        assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    "config", ["{}", "", '{"model_type": "vit", "n_clusters": 3}', "[]", '{"n_clusters": 3']
)
def test_a_folder_with_a_config_of_something_else_is_not_overwritten(tmp_path, config):
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(InputError, match="is not a run folder, so it is not overwritten"):
        RunFolder.create(tmp_path, overwrite=True)
    assert (tmp_path / "config.json").read_text() == config


def test_what_comes_while_images_are_read_is_not_overwritten(tmp_path):
    new = RunFolder.create(whole_run(tmp_path / "run").path, overwrite=True)
    (new.path / "thesis.txt").write_text("mine")
    with new.writing(), pytest.raises(InputError, match=r"holds thesis.txt"):
        new.begin({})
    assert (new.path / "thesis.txt").exists()
    assert new.read_config()["n_clusters"] == 3


def test_a_start_that_was_killed_at_its_first_write_is_no_dead_end(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    for name in (LOCK, ".config.123-0123abcd.partial.json", "job"):
        (path / name).write_text("{}")
    with pytest.raises(InputError) as caught:
        RunFolder.open(path)
    assert "start it again without --resume" in caught.value.told(COMMAND_LINE)
    for overwrite in (False, True):
        folder = RunFolder.create(path, overwrite=overwrite)
    with folder.writing():
        folder.begin({"n_clusters": 3})
    assert list(contents(path)) == ["config.json"]


@pytest.mark.parametrize("path", ["run", "runs/deep/run"])
def test_a_start_that_is_refused_leaves_no_folder(tmp_path, path):
    folder = RunFolder.create(tmp_path / path)
    with pytest.raises(InputError), folder.writing():
        raise InputError("bad settings")
    assert list(tmp_path.iterdir()) == []


def test_killed_anywhere_while_it_is_overwritten_it_is_the_one_run_or_the_other(tmp_path):
    path = tmp_path / "run"

    def overwrite() -> None:
        folder = RunFolder.create(path, overwrite=True, job="new job")
        with folder.writing():
            folder.begin(CONFIG | {"n_clusters": 4})

    for number in count(1):
        shutil.rmtree(path, ignore_errors=True)
        whole = contents(whole_run(path).path)
        was_killed = killed_before(number, overwrite, path)
        left = {name: text for name, text in contents(path).items() if not is_leftover(name)}
        left.pop(LOCK, None)
        config = left.pop("config.json", None)
        if config is None:  # nothing was begun, and nothing is there
            assert set(left) <= {"job"}
        elif json.loads(config)["n_clusters"] == 4:
            assert left == {"job": "new job\n"}
        else:
            assert left.items() <= whole.items()
        if not was_killed:
            break
        overwrite()
        assert set(contents(path)) == {"config.json", "job"}
    assert number > len(whole)


def test_readers_change_nothing(tmp_path):
    folder = whole_run(tmp_path / "run")
    (folder.path / ".report.123.partial.html").write_text("being written")
    (folder.path / LOCK).write_text("{}")
    before = contents(folder.path)
    operations = []
    with watched(operations.append, folder.path):
        opened = RunFolder.open(folder.path)
        opened.read_config()
        opened.read_names()
    assert operations == []
    assert contents(folder.path) == before


def test_whoever_writes_clears_what_killed_writers_left(tmp_path):
    folder = whole_run(tmp_path / "run")
    for name in (".report.123.partial.html", "figures/.loss.9-0123abcd.partial.png"):
        (folder.path / name).write_text("half")
    (folder.path / ".notes.partial").write_text("mine")
    with folder.writing():
        assert not [name for name in contents(folder.path) if is_leftover(Path(name).name)]
    assert (folder.path / ".notes.partial").exists()


def test_opening_anything_else_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="is not a run folder"):
            RunFolder.open(path)


def test_json_that_is_damaged_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    for content in ('{"n_clus', "[1]"):
        folder.config_file.write_text(content)
        with pytest.raises(InputError, match=r"config.json is no JSON"):
            folder.read_config()


def test_a_run_without_its_results_says_how_to_finish(tmp_path):
    folder = RunFolder(tmp_path)
    for read in (partial(folder.read_model, {}), folder.read_assignments):
        with pytest.raises(InputError) as caught:
            read()
        assert "yet: finish it by dcdc fit --resume" in caught.value.told(COMMAND_LINE)


def test_the_model_comes_back_and_a_damaged_one_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    network = torch.nn.Linear(3, 2)
    folder.write_model(network, {"n_clusters": 2})
    assert torch.equal(folder.read_model({})["weight"], network.weight)
    folder.model_file.write_bytes(folder.model_file.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        folder.read_model({})
    with torch.no_grad():
        network.bias[0] = torch.nan
    folder.write_model(network, {"n_clusters": 2})
    with pytest.raises(InputError, match=r"bias has values that are not finite.*: restore it"):
        folder.read_model({})


def test_assignments_as_parquet(tmp_path):
    columns = (["a", 'b "quoted", with comma'], np.array([1, 0]), np.array([0.5, 0.75]), ["x", "y"])
    folder = RunFolder(tmp_path)
    folder.write_assignments(*columns)
    table = pq.read_table(folder.assignments_file).to_pydict()
    assert table["name"] == columns[0]
    assert table["cluster"] == [1, 0]
    assert table["confidence"] == [0.5, 0.75]
    assert table["target"] == ["x", "y"]
    folder.write_assignments(*columns[:3], None)
    assert "target" not in pq.read_table(folder.assignments_file).column_names


def test_the_second_best_cluster_is_told_where_it_is_known(tmp_path):
    runner_up = (np.array([0, 1]), np.array([0.25, 0.125]))
    folder = RunFolder(tmp_path)
    shares = np.array([0.5, 0.75])
    folder.write_assignments(["a", "b"], np.array([1, 0]), shares, None, runner_up)
    table = pq.read_table(folder.assignments_file).to_pydict()
    assert list(table) == ["name", "cluster", "confidence", "runner_up", "runner_up_confidence"]
    assert table["runner_up"] == [0, 1]
    assert table["runner_up_confidence"] == [0.25, 0.125]


def test_assignments_that_are_damaged_are_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.assignments_file.write_bytes(b"PAR1 torn")
    with pytest.raises(InputError, match=r"assignments.parquet is damaged .*: restore it"):
        folder.read_assignments()


def test_a_sample_comes_back_and_a_damaged_one_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.read_sample() is None
    assign = np.full((3, 2), 0.5)
    sample = {"rows": np.arange(3), "features": np.ones((3, 4)), "assign": assign}
    sample |= {"view_rows": np.arange(3), "view_assign": assign, "view_assign_perturbed": assign}
    folder.write_sample(sample)
    found = folder.read_sample()
    assert found is not None
    assert found["rows"].tolist() == [0, 1, 2]
    whole = folder.sample_file.read_bytes()
    np.savez(folder.sample_file, rows=np.array([{}], object))
    pickled = folder.sample_file.read_bytes()
    for content in (whole[:-9], b"", b"nothing", pickled):
        folder.sample_file.write_bytes(content)
        with pytest.raises(InputError, match=r"sample.npz.*: remove it") as told:
            folder.read_sample()
        assert len(str(told.value).splitlines()) == 1


def test_skipped_images_are_listed(tmp_path):
    RunFolder(tmp_path).write_skipped([("bad, worse.jpg", "cut short")])
    lines = (tmp_path / "skipped.csv").read_text().splitlines()
    assert lines == ["name,reason", '"bad, worse.jpg",cut short']


def test_metrics_are_those_of_a_finished_run(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_metrics({"scores": {"acc": 0.5}})
    assert json.loads(folder.metrics_file.read_text())["scores"]["acc"] == 0.5
    with pytest.raises(InputError, match=r"metrics.json: n_images is missing: restore it"):
        folder.read_metrics()


def test_a_run_knows_the_job_that_made_it(tmp_path):
    folder = RunFolder.create(tmp_path / "run", job="photos")
    assert not folder.is_of_job("photos")
    folder.begin({})
    assert folder.is_of_job("photos")
    assert not folder.is_of_job("other")
    assert not folder.is_of_job(None)

import json
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from dcdc.cli.words import COMMAND_LINE
from dcdc.errors import InputError
from dcdc.run_folder import RunFolder, write_assignments


def test_a_folder_that_exists_is_refused_with_the_ways_out(tmp_path):
    (tmp_path / "run").mkdir()
    folder = RunFolder.create(tmp_path / "run")  # empty is as good as new
    folder.write_config({"n_clusters": 3})
    with pytest.raises(InputError) as caught:
        RunFolder.create(folder.path)
    ways = "go on with it by --resume, replace it by --overwrite, or choose another by --run"
    assert caught.value.told(COMMAND_LINE) == f"run folder {folder.path} exists: {ways}"


def test_overwriting_replaces_a_run_but_nothing_else(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config({})
    (folder.path / "old").write_text("old")
    assert list(RunFolder.create(folder.path, overwrite=True).path.iterdir()) == []
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder, so it is not overwritten"):
        RunFolder.create(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder"):
        RunFolder.create(tmp_path / "file", overwrite=True)


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
    write_assignments(tmp_path / "out.parquet", *columns)
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["name"] == columns[0]
    assert table["cluster"] == [1, 0]
    assert table["confidence"] == [0.5, 0.75]
    assert table["target"] == ["x", "y"]
    write_assignments(tmp_path / "plain.parquet", *columns[:3], None)
    assert "target" not in pq.read_table(tmp_path / "plain.parquet").column_names


def test_the_second_best_cluster_is_told_where_it_is_known(tmp_path):
    runner_up = (np.array([0, 1]), np.array([0.25, 0.125]))
    write_assignments(
        tmp_path / "out.parquet",
        ["a", "b"],
        np.array([1, 0]),
        np.array([0.5, 0.75]),
        None,
        runner_up,
    )
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
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
    folder = RunFolder.create(tmp_path / "run")
    assert not folder.is_of_job("photos")
    folder.write_job("photos")
    assert folder.is_of_job("photos")
    assert not folder.is_of_job("other")
    assert not folder.is_of_job(None)

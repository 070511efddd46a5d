"""Folders: what names them, and when one is taken for the run that is asked for."""

import json

import pytest

from dcdc.cli.words import COMPARE


def test_folders_are_named_by_method_changes_and_seed(make_run):
    assert make_run("k-means").folder.name == "k-means-seed-0"
    assert make_run("k-means", "k-means.n_init=3", seed=2).folder.name == "k-means-n-init-3-seed-2"
    named = make_run("sc", n_clusters=5, named={"clusters": 5, "size": 16})
    assert named.folder.name == "sc-clusters-5-size-16-seed-0"


def test_a_folder_is_missing_begun_done(make_run, leave_run):
    run, other = make_run("k-means"), make_run("sc")
    assert run.standing().state == "missing"
    leave_run(run, done=False)
    assert run.standing().state == "begun"
    leave_run(other, 0.25)
    assert other.standing().state == "done"
    assert other.standing().metrics["scores"]["acc"] == 0.25


def test_settings_that_are_tuples_are_known_again(make_run, leave_run):
    run = make_run("dcdc", "dcdc.heads.batch_size=16")
    leave_run(run)
    assert run.standing().state == "done"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("n_clusters", 4, "n_clusters is 3, was 4"),
        ("settings", {"n_init": 1}, "settings.n_init is 10, was 1"),
        ("settings", {}, "settings.n_init is 10, was 'absent'"),
        ("data", {"source": "elsewhere"}, "was 'elsewhere'"),
    ],
)
def test_a_folder_of_something_else_is_left_alone(make_run, leave_run, key, value, told):
    run = make_run("k-means")
    config = leave_run(run) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {key: value}))
    standing = run.standing()
    assert standing.state == "other"
    assert told in str(standing.fault)
    assert standing.fault.told(COMPARE).endswith(": move it away, or choose another --out")


def test_a_folder_with_an_older_name_of_a_setting_is_known_again(make_run, leave_run):
    run = make_run("ac")
    config = leave_run(run) / "config.json"
    config.write_text(config.read_text().replace("n_micro_clusters", "n_heaps"))
    assert run.standing().state == "done"


@pytest.mark.parametrize("method", ["k-means", "sc", "dcdc"])
def test_a_folder_of_an_older_format_is_known_again(make_run, leave_run, method):
    run = make_run(method)
    config = leave_run(run) / "config.json"
    for form in ({}, {"format": 1}):
        config.write_text(json.dumps(form | run.described()))
        assert run.standing().state == "done"


@pytest.mark.parametrize("file", ["config.json", "metrics.json"])
def test_damaged_files_are_told_not_run_over(make_run, leave_run, file):
    run = make_run("k-means")
    (leave_run(run) / file).write_text("{")
    assert run.standing().state == "other"
    assert file in str(run.standing().fault)

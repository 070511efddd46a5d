"""Ctrl-C while the number of clusters is looked for: one line says how to go on."""

import json

import pytest

from dcdc.engine.trainer import Trainer


@pytest.fixture
def flags(tiny_file, tiny_flags):
    first = ("--set", "heads.over_clustering_first=2", "--no-report")
    return [str(tiny_file), *tiny_flags, "--clusters", "2-4", *first]


def test_a_search_that_was_interrupted_is_resumed(dcdc, flags, tmp_path, monkeypatch):
    run = tmp_path / "run"
    assert dcdc("fit", *flags, "--run", str(tmp_path / "whole"))[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(
            Trainer, "_wanted", lambda trainer, _: "SIGINT" if trainer.epoch == 1 else None
        )
        code, _, err = dcdc("fit", *flags, "--run", str(run))
    assert code == 130
    assert f"state saved; go on with: dcdc fit --run {run} --resume" in err.splitlines()[-1]
    code, _, err = dcdc("predict", str(run), flags[0], "--out", str(tmp_path / "rows.csv"))
    assert code == 2
    assert "how many clusters it has is still looked for: finish it by" in err
    code, _, err = dcdc("fit", "--run", str(run), "--resume", "--clusters", "3")
    assert code == 2
    assert "is still looking for its number of clusters: leave --clusters out" in err
    code, _, err = dcdc("fit", "--run", str(run), "--resume", "--set", "heads.temperature=0.7")
    assert code == 2
    assert "with another config (heads.temperature is 0.7, was 0.5)" in err
    code, _, err = dcdc("fit", *flags, "--run", str(run), "--resume")
    assert code == 0, err
    assert "clusters, prediction strength" in err
    assert not (run / "search").exists()
    losses = [
        [json.loads(line)["loss"] for line in (folder / "history.jsonl").read_text().splitlines()]
        for folder in (run, tmp_path / "whole")
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 4


def test_another_run_may_take_the_place_of_a_search(dcdc, flags, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_wanted", lambda *_: "SIGINT")
        assert dcdc("fit", *flags, "--run", str(tmp_path / "run"))[0] == 130
    code, _, err = dcdc("fit", *flags, "--run", str(tmp_path / "run"))
    assert code == 2
    assert "--overwrite" in err
    code, _, err = dcdc("fit", *flags, "--run", str(tmp_path / "run"), "--overwrite")
    assert code == 0, err
    assert not (tmp_path / "run/search").exists()

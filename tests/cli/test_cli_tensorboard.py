"""Event files hold what the history holds, and a resumed run goes on in them."""

import json
import sys

import pytest

from dcdc.cli.tensorboard import scalars


def curves(folder):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard"
    ).EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def test_every_number_of_a_line_has_its_curve():
    record = {
        "epoch": 3,
        "seconds": 2,
        "loss": 1.5,
        "contrast": 1.0,
        "cluster_head/class_view": 2.0,
    }
    record |= {"acc": 0.5, "active_clusters": 3, "sizes": [1, 2], "warnings": [], "phase": "heads"}
    assert scalars(record) == {
        "time/seconds": 2,
        "loss/loss": 1.5,
        "loss/contrast": 1.0,
        "cluster_head/class_view": 2.0,
        "scores/acc": 0.5,
        "partition/active_clusters": 3,
    }


def test_the_events_of_a_run_are_its_history(dcdc, tiny_file, tiny_flags, tmp_path):
    run = tmp_path / "run"
    code, _, err = dcdc(
        "fit", str(tiny_file), "--run", str(run), *tiny_flags, "--tensorboard", "--no-report"
    )
    assert code == 0, err
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    found = curves(run / "events")
    assert found["scores/acc"] == [(line["epoch"], pytest.approx(line["acc"])) for line in history]
    more = ["--set", "heads.epochs=6", "--no-report"]
    code, _, err = dcdc("fit", "--run", str(run), "--resume", *more, "--tensorboard")
    assert code == 0, err
    assert [step for step, _ in curves(run / "events")["loss/loss"]] == [1, 2, 3, 4, 5, 6]


def test_epochs_of_the_search_for_a_number_have_events_too(dcdc, tiny_file, tiny_flags, tmp_path):
    run = tmp_path / "run"
    flags = [*tiny_flags, "--clusters", "2-4", "--set", "heads.over_clustering_first=2"]
    code, _, err = dcdc("fit", str(tiny_file), "--run", str(run), *flags, "--tensorboard")
    assert code == 0, err
    found = curves(run / "events")
    assert [step for step, _ in found["loss/loss"]] == [1, 2, 3, 4]
    assert [step for step, _ in found["scores/acc"]] == [3, 4]
    assert "heads epoch 3/4" in err or "epoch 4/4" in err


def test_without_the_package_one_line_says_how_to_get_it(dcdc, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    code, _, err = dcdc("fit", "digits", "--run", str(tmp_path / "run"), "--tensorboard")
    assert code == 2
    assert "pip install 'dcdc[tensorboard]'" in err
    assert not (tmp_path / "run").exists()

"""What a child does, in this process."""

import json
from pathlib import Path

import numpy as np
import pytest

from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.experiments.method_child import ToldEpochs, carry_out
from dcdc.experiments.method_process import Relay, tell
from dcdc.run_folder import RunFolder


def test_a_refusal_leaves_no_folder_but_one_that_was_begun_stays(make_run, leave_run):
    run = make_run("dcdc", "dcdc.heads.batch_size=49")
    with pytest.raises(InputError, match="a batch of 49 is larger"):
        carry_out(run.job(), SilentObserver())
    assert not run.folder.exists()
    leave_run(run, done=False)
    with pytest.raises(InputError, match="a batch of 49 is larger"):
        carry_out(run.job(), SilentObserver())
    assert run.standing().state == "begun"


def test_what_a_killed_writer_left_is_cleared(make_run, leave_run):
    run = make_run("k-means")
    leftover = leave_run(run, done=False) / ".metrics.1.partial.json"
    leftover.write_text("{")
    (run.folder / "error.txt").write_text("of before")
    carry_out(run.job(), SilentObserver())
    assert run.standing().state == "done"
    assert sorted(path.name for path in run.folder.iterdir()) == [
        *("assignments.parquet", "config.json", "metrics.json"),
    ]


def test_what_a_method_tells_of_its_epochs_is_kept_where_it_keeps_nothing_itself(make_run):
    run = make_run("ae", "ae.n_steps=3", "ae.width=2", "ae.batch_size=16")
    carry_out(run.job(), SilentObserver())
    history = RunFolder(run.folder).read_history()
    assert [line["epoch"] for line in history] == [1]
    assert history[0]["loss"] > 0
    assert run.standing().metrics["epochs"] == 1
    of_engine = make_run("pica", "pica.epochs=2", "pica.batch_size=16")
    carry_out(of_engine.job(), SilentObserver())
    assert not (of_engine.folder / "history.jsonl").exists()
    assert len(RunFolder(of_engine.folder / "run").read_history()) == 2
    assert of_engine.standing().metrics["epochs"] == 2


def test_whatever_a_method_tells_its_history_can_be_read():
    told = ToldEpochs(SilentObserver())
    told.on_epoch({"epoch": 7, "loss": float("nan"), "note": "words", "terms": [1], "acc": 0.5})
    assert told.records == [{"seconds": 0.0, "epoch": 1, "acc": 0.5}]


def test_images_without_targets_have_no_scores(make_run, tiny_set, tmp_path):
    np.save(tmp_path / "blind.npy", tiny_set.images)
    run = make_run("k-means")
    job = run.job()
    job["asked"]["data"]["source"] = str(tmp_path / "blind.npy")
    carry_out(job, SilentObserver())
    metrics = json.loads((run.folder / "metrics.json").read_text())
    assert metrics["scores"] is None
    assert metrics["health"]["active_clusters"] == 3


def test_what_a_child_tells_its_observer_the_parents_is_told(tmp_path):
    class Noted(SilentObserver):
        told: list

        def __init__(self):
            self.told = []

        def on_start(self, **start):
            self.told.append(start)

        def on_step(self, terms, n_images):
            self.told.append((terms, n_images))

        def on_epoch(self, record):
            self.told.append(record)

        def warn(self, message):
            self.told.append(message)

    path: Path = tmp_path / "events"
    with path.open("w") as lines:
        relay = Relay(lines)
        relay.on_start(epoch=0, epochs=2, steps_left=4)
        relay.on_step({"loss": object()}, 16)
        relay.on_step({"loss": object()}, 16)
        relay.on_epoch({"epoch": 1, "loss": 0.5})
        relay.warn("look")
        relay.send("done")
    noted = Noted()
    for line in path.read_text().splitlines():
        tell(noted, json.loads(line))
    assert noted.told == [
        {"epoch": 0, "epochs": 2, "steps_left": 4},
        ({}, 16),
        ({}, 16),
        {"epoch": 1, "loss": 0.5},
        "look",
    ]

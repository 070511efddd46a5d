"""What a child does, in this process."""

import json
from pathlib import Path

import numpy as np
import pytest

from dcdc.compare.child import carry_out, check_answer
from dcdc.compare.relay import Relay, tell
from dcdc.compare.standing import read_standing
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError, TrainingError
from dcdc.methods import Clustering


def job_of(run) -> dict:
    return run.described() | {"folder": str(run.folder), "device": "cpu"}


def test_a_refusal_leaves_no_folder_but_one_that_was_begun_stays(make_run, leave_run):
    run = make_run("dcdc", "dcdc.train.batch_size=49")
    with pytest.raises(InputError, match="a batch of 49 is larger"):
        carry_out(job_of(run), SilentObserver())
    assert not run.folder.exists()
    leave_run(run, done=False)
    with pytest.raises(InputError, match="a batch of 49 is larger"):
        carry_out(job_of(run), SilentObserver())
    assert read_standing(run).state == "begun"


def test_what_a_killed_writer_left_is_cleared(make_run, leave_run):
    run = make_run("k-means")
    leftover = leave_run(run, done=False) / ".metrics.1.partial.json"
    leftover.write_text("{")
    (run.folder / "error.txt").write_text("of before")
    carry_out(job_of(run), SilentObserver())
    assert read_standing(run).state == "done"
    assert sorted(path.name for path in run.folder.iterdir()) == [
        *("assignments.parquet", "config.json", "metrics.json"),
    ]


def test_images_without_targets_have_no_scores(make_run, tiny_set, tmp_path):
    np.save(tmp_path / "blind.npy", tiny_set.images)
    run = make_run("k-means")
    job = job_of(run)
    job["data"] = {**job["data"], "source": str(tmp_path / "blind.npy")}
    carry_out(job, SilentObserver())
    metrics = json.loads((run.folder / "metrics.json").read_text())
    assert metrics["scores"] is None
    assert metrics["health"]["active_clusters"] == 3


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (np.arange(48) % 4, "answered clusters 0 to 3 of 3"),
        (np.full(48, -1), "answered clusters -1 to -1"),
        (np.zeros(47, np.int64), r"answered \(47,\) of int64 for 48 images"),
        (np.zeros(48), "of float64"),
    ],
)
def test_an_answer_that_is_none_is_refused(answers, told):
    with pytest.raises(TrainingError, match=told):
        check_answer(Clustering(answers), 48, 3, "a method")


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

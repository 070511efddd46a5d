"""The simulated person: which images she finds wrong, and where she puts them."""

import json
import sys

import numpy as np
import pytest

import corrections
from dcdc.engine.edits import RunAnswers, corrected
from dcdc.run_folder import RunFolder
from feature_runs import trained

TARGETS = np.array(["cat", "cat", "cat", "dog", "dog", "dog", "dog"])
CLUSTERS = np.array([1, 1, 0, 0, 0, 0, 1])
ANSWERS = RunAnswers([f"{row}.jpg" for row in range(7)], CLUSTERS, 2)


def test_she_finds_the_images_that_acc_counts_as_wrong():
    seen = np.array([6, 0, 1, 2, 3, 4, 5])
    assert corrections.places_of_wrong(TARGETS, CLUSTERS, seen).tolist() == [0, 3]


def test_she_moves_each_to_the_cluster_of_its_class():
    edits = corrections.moves(TARGETS, ANSWERS, [6, 2])
    assert corrected(edits, ANSWERS).clusters.tolist() == [1, 1, 1, 0, 0, 0, 0]


def test_she_looks_at_random_or_at_the_least_sure_first():
    confidence = np.array([0.9, 0.2, 0.5])
    assert corrections.order_of("least sure", confidence, 0).tolist() == [1, 2, 0]
    found = [corrections.order_of("random", np.ones(50), seed).tolist() for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert sorted(found[0]) == list(range(50))


@pytest.mark.slow
def test_a_record_of_a_run(mixed_file, tmp_path, monkeypatch, capsys):
    run = trained(mixed_file, tmp_path / "run", **{"n_clusters": 3, "heads.epochs": 1})
    table = RunFolder.open(run).read_assignments().to_pydict()
    clusters = np.array([int(target) for target in table["target"]])
    clusters[:40] = 0
    RunFolder.open(run).write_assignments(
        table["name"], clusters, np.array(table["confidence"]), table["target"]
    )
    out = tmp_path / "record.json"
    given = ["corrections.py", str(run), "--corrections", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", [*given, "--set", "refine.epochs=1"])
    corrections.main()
    record = json.loads(out.read_text())
    assert [row["corrections"] for row in record["rows"]] == [0, 1]
    assert record["rows"][1]["looked_at"] >= 1
    assert record["medians"][1]["acc"] == record["rows"][1]["acc"]
    assert "| corrections | looked_at | acc |" in capsys.readouterr().out

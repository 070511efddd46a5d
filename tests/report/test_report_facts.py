from dataclasses import replace

import numpy as np
import pytest

from dcdc.cli.words import COMMAND_LINE
from dcdc.config import RunConfig, with_values
from dcdc.errors import InputError
from dcdc.report.facts import read_facts
from dcdc.run_folder import RunFolder


def test_reads_back_what_lies_in_the_folder(make_facts, write_run, tmp_path):
    skipped = [('a "b", <i>.png', "cannot be read,\nreally"), ("ü.png", "empty")]
    written = make_facts(
        [0, 1, 1], n_clusters=3, targets=["x", "y", "<b>"], epochs=2, skipped=skipped
    )
    facts = read_facts(write_run(tmp_path / "run", written))
    assert facts.path == tmp_path / "run"
    assert with_values(RunConfig(), facts.config) == with_values(RunConfig(), written.config)
    assert facts.config.keys() == written.config.keys()
    assert tuple(facts.config["phases"]) == ("heads",)
    assert facts.names == written.names
    assert facts.assignments.tolist() == [0, 1, 1]
    assert facts.confidence.tolist() == pytest.approx(written.confidence.tolist())
    assert facts.targets is not None
    assert facts.targets.tolist() == ["x", "y", "<b>"]
    assert facts.history == written.history
    assert facts.skipped == skipped
    assert facts.n_clusters == 3
    assert facts.source == "digits"


def test_no_targets_no_skipped(make_facts, write_run, tmp_path):
    facts = read_facts(write_run(tmp_path / "run", make_facts([0, 1], n_clusters=2)))
    assert facts.targets is None
    assert facts.skipped == []
    assert facts.runner_up is None
    assert facts.runner_up_confidence is None


def test_the_second_best_cluster_is_read_where_it_is_known(make_facts, write_run, tmp_path):
    written = make_facts([0, 1], n_clusters=3)
    folder = write_run(tmp_path / "run", written)
    runner_up = (np.array([2, 0]), np.array([0.25, 0.125]))
    folder.write_assignments(
        written.names, written.assignments, written.confidence, None, runner_up
    )
    facts = read_facts(folder)
    assert facts.runner_up is not None
    assert facts.runner_up_confidence is not None
    assert facts.runner_up.tolist() == [2, 0]
    assert facts.runner_up_confidence.tolist() == [0.25, 0.125]


def test_an_unfinished_run_says_how_to_go_on(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config({"n_clusters": 2})
    with pytest.raises(InputError) as caught:
        read_facts(folder)
    assert "finish it by dcdc fit --resume" in caught.value.told(COMMAND_LINE)


def test_series_skips_epochs_without_the_key(make_facts):
    facts = make_facts([0, 1], n_clusters=2, targets=["a", "b"], epochs=4, evaluate_every=2)
    assert facts.series("acc") == ([2, 4], [0.2, 0.4])
    assert facts.series("cluster_head/sample_view")[0] == [1, 3, 4]
    assert facts.series("unheard_of") == ([], [])


def test_warnings_are_those_of_the_last_epoch(make_facts):
    facts = make_facts([0, 1], n_clusters=2, epochs=2)
    facts.history[0]["warnings"] = ["mended since"]
    facts.history[1]["warnings"] = ["still there"]
    assert facts.warnings == ["still there"]
    del facts.history[1]["warnings"]
    assert facts.warnings == []
    assert replace(facts, history=[]).warnings == []


def test_images_of_another_set_are_told(make_facts, flat_images):
    facts = make_facts([0, 1, 1], n_clusters=2)
    images = flat_images(facts)
    assert facts.why_not_these_images(images) is None
    fewer = replace(images, images=images.images[:2], names=images.names[:2])
    assert "3 images" in facts.why_not_these_images(fewer)
    assert "has 2" in facts.why_not_these_images(fewer)
    swapped = replace(images, names=[images.names[i] for i in (0, 2, 1)])
    assert "image 1 is 'image-1'" in facts.why_not_these_images(swapped)
    assert np.array_equal(images.images, swapped.images)

from dataclasses import replace

import numpy as np
import pytest

from dcdc.cli.words import COMMAND_LINE
from dcdc.config import RunConfig, with_values
from dcdc.errors import InputError
from dcdc.report.facts import describe_clusters, read_facts, read_sample
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
    facts.history[0]["warnings"] = ["corrected since"]
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


def test_largest_first_and_within_it_the_surest_image(make_facts):
    facts = make_facts(
        [2, 0, 2, 2, 0], n_clusters=3, confidence=[0.5, 0.6, 0.9, 0.7, 0.8], targets=list("abaab")
    )
    clusters = describe_clusters(facts)
    assert [cluster.number for cluster in clusters] == [2, 0, 1]
    assert [cluster.size for cluster in clusters] == [3, 2, 0]
    assert clusters[0].members.tolist() == [2, 3, 0]
    assert clusters[0].mean_confidence == pytest.approx(0.7)
    assert clusters[1].members.tolist() == [4, 1]


def test_purity_names_the_class_that_makes_it(make_facts):
    facts = make_facts([0, 0, 0, 1], n_clusters=2, targets=["cat", "dog", "dog", "cat"])
    first, second = describe_clusters(facts)
    assert first.purity == pytest.approx(2 / 3)
    assert first.main_class == "dog"
    assert first.n_of_main_class == 2
    assert (second.purity, second.main_class) == (1.0, "cat")


def test_an_empty_cluster_has_neither_confidence_nor_purity(make_facts):
    facts = make_facts([2, 2], n_clusters=4, targets=["a", "a"])
    empty = [cluster for cluster in describe_clusters(facts) if cluster.number != 2]
    assert [cluster.number for cluster in empty] == [0, 1, 3]
    assert all(cluster.size == 0 for cluster in empty)
    assert all(cluster.mean_confidence == 0 for cluster in empty)
    assert all(cluster.purity is None for cluster in empty)


def test_without_targets_there_is_no_purity(make_facts):
    clusters = describe_clusters(make_facts([0, 1, 1], n_clusters=2))
    assert [cluster.purity for cluster in clusters] == [None, None]


def test_a_run_without_a_sample_has_none(make_facts, write_run, tmp_path):
    assert read_sample(write_run(tmp_path / "run", make_facts([0, 1], n_clusters=2))) is None


def test_a_sample_comes_back_as_written(make_facts, write_run, make_sample, tmp_path):
    folder = write_run(tmp_path / "run", make_facts([0, 1, 1, 0], n_clusters=3))
    written = make_sample([0, 1, 1, 0], n_clusters=3)
    folder.write_sample({**vars(written), "features": written.features.astype(np.float16)})
    sample = read_sample(folder)
    assert sample is not None
    assert sample.features.dtype == np.float32
    for name, array in vars(written).items():
        assert np.allclose(getattr(sample, name), array, atol=0.01), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": None}, "rows is missing"),
        ({"rows": np.array([0, 1, 2, 9])}, "not rising positions among 4"),
        ({"rows": np.array([0, 2, 1, 3])}, "not rising"),
        ({"rows": np.zeros((2, 2), int)}, r"rows has shape \(2, 2\)"),
        ({"view_rows": np.array([], int)}, "view_assign has shape"),
        ({"assign": np.ones((4, 7), np.float32)}, r"assign has shape \(4, 7\)"),
        ({"features": np.float16(3)}, "features has shape"),
        ({"features": np.full((4, 2), np.nan, np.float16)}, "not finite"),
        ({"view_assign": np.ones((4, 3), int)}, "view_assign"),
    ],
)
def test_a_file_that_does_not_fit_the_run_is_one_line(
    make_facts, write_run, make_sample, tmp_path, change, message
):
    folder = write_run(tmp_path / "run", make_facts([0, 1, 1, 0], n_clusters=3))
    arrays = vars(make_sample([0, 1, 1, 0], n_clusters=3)) | change
    folder.write_sample({name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=message) as told:
        read_sample(folder)
    assert "sample.npz" in str(told.value)
    assert "remove it" in str(told.value)
    assert len(str(told.value).splitlines()) == 1


def test_a_damaged_file_is_one_line(make_facts, write_run, tmp_path):
    folder = write_run(tmp_path / "run", make_facts([0, 1], n_clusters=2))
    folder.sample_file.write_bytes(b"PK\x03\x04torn")
    with pytest.raises(InputError, match=r"sample.npz is damaged .*: remove it"):
        read_sample(folder)

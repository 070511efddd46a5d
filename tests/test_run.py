import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open

import dcdc
from dcdc.config import to_mapping, with_values
from dcdc.data import Skipped, from_arrays
from dcdc.errors import InputError
from dcdc.prepare.resolve import resolve
from dcdc.run import add_sample, read_config, run
from dcdc.run_folder import RunFolder


@pytest.fixture
def good_config(tiny_config):
    values = {"heads.over_clustering_first": 2, "heads.initialisation": "k-means"}
    return with_values(tiny_config, values)


def halves(image_set, n_clusters, seed):  # noqa: ARG001
    return np.arange(image_set.n_images) % 2


def test_a_run_leaves_every_file_and_a_model_that_answers_the_same(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    result = run(good_config, tiny_set, folder=folder, baselines={"halves": halves})
    names = {path.name for path in folder.path.iterdir()}
    wanted = {"config.json", "history.jsonl", "checkpoint", "model.safetensors", "hierarchy.json"}
    assert names == wanted | {"assignments.parquet", "metrics.json", "sample.npz", "README.md"}
    assert result.metrics["scores"]["acc"] > 0.9
    assert set(result.metrics["baselines"]["halves"]) == set(result.metrics["scores"])
    assert folder.read_metrics() == result.metrics
    table = folder.read_assignments()
    assert table["name"].to_pylist() == list(tiny_set.names)
    assert table["cluster"].to_pylist() == result.assigned.assignments.tolist()
    assert table["target"].to_pylist() == [str(target) for target in tiny_set.targets]
    in_order = np.sort(result.assigned.probabilities, axis=1)
    assert np.array_equal(table["runner_up_confidence"].to_numpy(), in_order[:, -2])
    second = np.argsort(result.assigned.probabilities, axis=1)[:, -2]
    assert table["runner_up"].to_pylist() == second.tolist()
    model = dcdc.load(folder.path)
    assert np.array_equal(model.predict_proba(tiny_set.images), result.assigned.probabilities)


def test_a_run_leaves_a_sample_and_the_model_makes_the_same_again(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    result = run(good_config, tiny_set, folder=folder)
    sample = folder.read_sample()
    assert np.array_equal(sample["assign"], result.assigned.probabilities)
    assert sample["rows"].tolist() == list(range(48))
    assert sample["features"].dtype == np.float16
    written = folder.sample_file.read_bytes()
    folder.sample_file.unlink()
    assert folder.read_sample() is None
    add_sample(folder, tiny_set, device="cpu")
    assert folder.sample_file.read_bytes() == written


def test_without_a_folder_nothing_is_written(good_config, tiny_set, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(good_config, tiny_set)
    assert list(tmp_path.iterdir()) == []
    assert len(result.history) == 4


def test_a_run_can_begin_with_given_weights(good_config, tiny_set):
    first = run(good_config, tiny_set)
    values = {"heads.over_clustering_first": 0, "heads.initialisation": "random", "heads.epochs": 1}
    weights = first.model.network.state_dict()
    second = run(with_values(good_config, values), tiny_set, weights=weights)
    assert second.history[0]["loss"] < first.history[0]["loss"]
    assert second.metrics["scores"]["acc"] > 0.9


def test_without_targets_everything_works_and_no_score_is_given(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    unlabelled = replace(tiny_set, targets=None, class_names=())
    result = run(good_config, unlabelled, folder=folder, baselines={"halves": halves})
    assert result.metrics["scores"] is None
    assert result.metrics["baselines"] == {}
    assert "target" not in folder.read_assignments().column_names


def test_skipped_images_are_listed_in_the_folder(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(good_config, replace(tiny_set, skipped=(Skipped("a.jpg", "empty"),)), folder=folder)
    assert "a.jpg,empty" in folder.skipped_file.read_text()


def test_a_finished_run_can_become_longer_and_ends_as_a_long_one(good_config, tiny_set, tmp_path):
    straight = run(good_config, tiny_set)
    folder = RunFolder.create(tmp_path / "run")
    run(with_values(good_config, {"heads.epochs": 3}), tiny_set, folder=folder)
    longer = run(good_config, tiny_set, folder=folder, resume=True)
    assert np.array_equal(longer.assigned.probabilities, straight.assigned.probabilities)
    assert [record["epoch"] for record in longer.history] == [1, 2, 3, 4]
    assert [table["epochs"] for table in folder.read_config()["phases"]] == [4]


@pytest.fixture
def three_phases(good_config):
    return with_values(
        good_config,
        {
            "phases": ("contrast", "heads", "self_label"),
            "contrast.epochs": 2,
            "contrast.batch_size": 16,
            "heads.neighbours": 3,
            "self_label.epochs": 2,
            "self_label.batch_size": 16,
            "self_label.threshold": 0.6,
        },
    )


@pytest.mark.parametrize("features", ["contrast", "byol"])
def test_a_run_in_three_phases_leaves_a_model_that_answers_the_same(
    three_phases, tiny_set, tmp_path, features
):
    """Without what phases add to the network, which is of the training alone."""
    if features == "byol":
        phases = {"phases": ("byol", "heads", "self_label"), "byol.batch_size": 16}
        three_phases = with_values(three_phases, phases | {"byol.epochs": 2})
    folder = RunFolder.create(tmp_path / "run")
    result = run(three_phases, tiny_set, folder=folder)
    assert result.metrics["epochs"] == 2 + 4 + 2
    assert [line["phase"] for line in folder.read_history()] == (
        [features] * 2 + ["heads"] * 4 + ["self_label"] * 2
    )
    with safe_open(folder.model_file, "pt") as written:
        assert not any(name.startswith("parts") for name in written.keys())  # noqa: SIM118
    assert list(result.model.network.parts) == []
    model = dcdc.load(folder.path)
    assert np.array_equal(model.predict_proba(tiny_set.images), result.assigned.probabilities)
    again = run(three_phases, tiny_set, folder=folder, resume=True)  # nothing is left to do
    assert np.array_equal(again.assigned.probabilities, result.assigned.probabilities)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heads.epochs": 5}, r"heads.epochs is 5, was 4"),
        ({"self_label.epochs": 3}, r"self_label.epochs is 3, was 2"),
        ({"self_label.epochs": 0, "heads.epochs": 5}, r"self_label.epochs is 0, was 2"),
        ({"contrast.epochs": 3}, r"contrast.epochs is 3, was 2"),
        ({"heads.neighbours": 4}, r"heads.neighbours is 4, was 3"),
    ],
)
def test_a_run_that_ends_in_self_labels_cannot_become_longer(
    three_phases, tiny_set, tmp_path, values, message
):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config(to_mapping(resolve(three_phases, tiny_set)))
    with pytest.raises(InputError, match=message):
        run(with_values(three_phases, values), tiny_set, folder=folder, resume=True)


def test_a_run_without_self_labels_can_become_longer_after_instance_epochs(
    three_phases, tiny_set, tmp_path
):
    config = with_values(three_phases, {"self_label.epochs": 0})
    straight = run(config, tiny_set)
    folder = RunFolder.create(tmp_path / "run")
    run(with_values(config, {"heads.epochs": 3}), tiny_set, folder=folder)
    longer = run(config, tiny_set, folder=folder, resume=True)
    assert np.array_equal(longer.assigned.probabilities, straight.assigned.probabilities)
    assert [record["epoch"] for record in longer.history] == [1, 2, 3, 4, 5, 6]


def test_resume_with_another_config_names_the_difference(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(good_config, tiny_set, folder=folder)
    before = folder.config_file.read_text()
    for values, message in (
        ({"train.seed": 5}, r"train.seed is 5, was 0"),
        ({"heads.temperature": 0.3}, r"heads.temperature is 0.3, was 0.5"),
        ({"heads.epochs": 3}, r"heads.epochs is 3, was 4"),
        ({"heads.epochs": 9, "heads.schedule": "cosine"}, r"heads.epochs is 9, was 4"),
    ):
        with pytest.raises(InputError, match=message):
            run(with_values(good_config, values), tiny_set, folder=folder, resume=True)
        assert folder.config_file.read_text() == before


def test_resume_knows_its_images(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    config = run(good_config, tiny_set, folder=folder).config
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    other_pixels = tiny_set.images.copy()
    other_pixels[40, 3, 3] ^= 1
    turned = np.arange(48)[::-1]
    for changed, told in (
        (replace(tiny_set, images=other_pixels), "other pixels than"),
        (replace(tiny_set, names=["renamed", *tiny_set.names[1:]]), "other names than"),
        (replace(tiny_set, images=tiny_set.images[turned]), "other pixels than"),
        (replace(tiny_set, targets=tiny_set.targets[turned].copy()), "other classes than"),
        (
            from_arrays(other_pixels, tiny_set.targets + 1),
            "other pixels and classes than",
        ),
    ):
        with pytest.raises(InputError, match=f"the source has {told} the run was trained on"):
            run(config, changed, folder=folder, resume=True)
    after = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    assert after == before
    run(config, tiny_set, folder=folder, resume=True)


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("train", "seed", 7, r"train.seed is 7, was 0"),
        ("augment", "noise", 0.5, r"augment.noise is 0.5, was 0.05"),
    ],
)
def test_resume_notices_a_config_that_was_edited(
    good_config, tiny_set, tmp_path, section, key, value, told
):
    folder = RunFolder.create(tmp_path / "run")
    run(good_config, tiny_set, folder=folder)
    stored = json.loads(folder.config_file.read_text())
    stored[section][key] = value
    folder.config_file.write_text(json.dumps(stored))
    edited = read_config(folder)
    with pytest.raises(InputError, match=f"settings were changed since its checkpoint .{told}"):
        run(edited, tiny_set, folder=folder, resume=True)


def test_resume_takes_neutral_changes_and_images_that_moved(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    first = run(good_config, tiny_set, folder=folder)
    stored = json.loads(folder.config_file.read_text())
    stored["train"]["keep_checkpoints"] = 1
    stored["data"]["source"] = "/elsewhere/tiny.npz"
    folder.config_file.write_text(json.dumps(stored))
    again = run(read_config(folder), tiny_set, folder=folder, resume=True)
    assert np.array_equal(again.assigned.probabilities, first.assigned.probabilities)


def test_a_checkpoint_that_does_not_say_what_it_was_made_with_is_gone_on_from(
    good_config, tiny_set, tmp_path
):
    """As those of 0.1.0."""
    folder = RunFolder.create(tmp_path / "run")
    run(good_config, tiny_set, folder=folder)
    for file in (folder.path / "checkpoint").glob("*/state.json"):
        state = json.loads(file.read_text())
        del state["extra"]["made_with"]
        file.write_text(json.dumps(state))
    longer = with_values(good_config, {"heads.epochs": 5})
    assert len(run(longer, tiny_set, folder=folder, resume=True).history) == 5


def test_a_run_that_is_refused_leaves_nothing_and_the_older_run_as_it_is(
    good_config, tiny_set, tmp_path
):
    bad = with_values(good_config, {"network.mean": (0.5,) * 2, "network.std": (0.5,) * 2})
    with pytest.raises(ValueError, match="channel"):
        run(bad, tiny_set, folder=RunFolder.create(tmp_path / "runs" / "new"))
    assert list(tmp_path.iterdir()) == []
    run(good_config, tiny_set, folder=RunFolder.create(tmp_path / "run"))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(ValueError, match="channel"):
        run(bad, tiny_set, folder=RunFolder.create(tmp_path / "run", overwrite=True))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_resume_before_the_first_checkpoint_starts_anew(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config(to_mapping(resolve(good_config, tiny_set)))
    result = run(good_config, tiny_set, folder=folder, resume=True)
    assert len(result.history) == 4


def test_a_model_that_does_not_fit_its_config_is_named(good_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(good_config, tiny_set, folder=folder)
    config = folder.read_config()
    config["n_clusters"] = 7
    folder.write_config(config)
    with pytest.raises(InputError, match=r"config.json has n_clusters = 7, its model .* 3: set it"):
        dcdc.load(folder.path)


def test_a_model_trained_in_bfloat16_on_a_gpu_answers_on_a_cpu(tiny_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    trained = run(tiny_config, tiny_set, folder=folder)
    config = folder.read_config()
    config["train"] |= {"precision": "bfloat16", "device": "cuda"}  # as a GPU leaves it
    folder.write_config(config)
    answered = dcdc.load(folder.path, device="cpu").predict(tiny_set.images)
    assert np.array_equal(answered, trained.assigned.assignments)

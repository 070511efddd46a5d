"""How many clusters there are, from a source to a run folder: the images settle it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dcdc import DCDC
from dcdc.config import RunConfig
from dcdc.data import from_vectors
from dcdc.errors import InputError
from dcdc.number_search import feature_recipe, find_number
from dcdc.phases.contrast import Contrast
from dcdc.phases.discriminate import Discriminate
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel
from dcdc.prepare.cluster_number import NumberRange
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.resolve import resolve
from dcdc.report import write_report
from dcdc.run import run
from dcdc.run_folder import RunFolder


def clouds(n_clouds: int, n_rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    kinds = np.arange(n_rows) % n_clouds
    vectors = 6 * np.eye(n_clouds, 24)[kinds] + random.normal(size=(n_rows, 24))
    return vectors.astype(np.float32), kinds


def prepared(n_clusters: object, n_clouds: int = 5):
    overrides = Overrides({"n_clusters": n_clusters, "train.threads": 1, "heads.epochs": 2})
    return prepare_run(from_vectors(*clouds(n_clouds)), overrides, find_number=find_number)


@pytest.mark.parametrize(("asked_for", "n_clouds"), [("auto", 4), ("3-9", 5)])
def test_a_run_has_as_many_clusters_as_the_vectors_settle_on(asked_for, n_clouds):
    found = prepared(asked_for, n_clouds)
    assert found.config.n_clusters == n_clouds
    assert found.number.is_settled
    assert max(found.number.strengths) == (13 if asked_for == "auto" else 10)


def test_a_number_that_is_given_is_not_looked_for():
    assert prepared(7).config.n_clusters == 7
    assert prepared(7).number is None


@pytest.mark.parametrize("asked_for", ["9-3", "1-5", "4-4"])
def test_what_is_no_range_is_refused(asked_for):
    with pytest.raises(InputError, match="is no range of numbers"):
        prepared(asked_for)


def test_a_range_beyond_the_images_is_refused():
    with pytest.raises(InputError, match="240 images are too few to settle"):
        prepared("5-100")


def test_who_cannot_look_says_so():
    with pytest.raises(InputError, match="in one process alone"):
        prepare_run(from_vectors(*clouds(3)), Overrides({"n_clusters": "auto"}))


def test_features_are_learnt_by_what_comes_before_the_cluster_head():
    heads = Heads(epochs=10, over_clustering_first=0.6)
    contrast, short = feature_recipe(
        RunConfig(n_clusters=3, phases=(Contrast(epochs=5), heads, SelfLabel(epochs=2)))
    ).phases
    assert contrast == Contrast(epochs=2)
    assert (short.epochs, short.epochs_alone) == (1, 0)
    (short,) = feature_recipe(RunConfig(n_clusters=3, phases=(heads, SelfLabel()))).phases
    assert (short.epochs, short.epochs_alone) == (5, 4)
    slow = RunConfig(n_clusters=3, phases=(Discriminate(epochs=12, warmup_epochs=10), heads))
    assert feature_recipe(slow).phases[0].epochs == 11  # its rate has to rise first


@pytest.mark.parametrize(
    ("phases", "epochs"),
    [((FrozenHeads(epochs=6), SelfLabel(epochs=2)), (2, 1)), ((), (2,))],
)
def test_features_are_learnt_without_a_phase_called_heads(phases, epochs):
    recipe = feature_recipe(RunConfig(n_clusters=3, phases=(Contrast(epochs=5), *phases)))
    assert tuple(phase.epochs for phase in recipe.phases) == epochs
    assert recipe.train.evaluate_every == sum(epochs)


@pytest.mark.parametrize("heads", [None, FrozenHeads(epochs=2, batch_size=16, neighbours=3)])
def test_features_of_instance_contrast_can_be_learnt_alone(tiny_config, tiny_set, heads):
    of_heads = tiny_config.phases if heads is None else (heads,)
    phases = (Contrast(epochs=2, batch_size=16), *of_heads)
    config = resolve(replace(tiny_config, phases=phases), tiny_set)
    found = find_number(config, tiny_set, NumberRange(2, 4))
    assert found.strengths.keys() == {2, 3, 4, 5}


def test_the_report_shows_how_it_was_settled(tmp_path):
    found = prepared("auto", 4)
    folder = RunFolder.create(tmp_path / "run")
    run(found.config, found.images, folder=folder, number=found.number)
    kept = json.loads(folder.number_file.read_text())
    assert (kept["number"], kept["is_settled"]) == (4, True)
    assert kept["strengths"]["4"] > kept["strengths"]["5"]
    page = write_report(folder, found.images).read_text()
    assert "How many clusters" in page
    folder.number_file.unlink()
    assert "How many clusters" not in write_report(folder, found.images).read_text()


@pytest.mark.slow  # trains features first, then the run
def test_images_are_told_apart_by_features_that_are_learnt_first(tiny_set):
    random = np.random.default_rng(0)
    rows = random.integers(0, tiny_set.n_images, 180)
    noise = random.integers(0, 20, (180, *tiny_set.image_shape))
    images = (tiny_set.images[rows].clip(max=235) + noise).astype(np.uint8)
    kinds = tiny_set.targets[rows]
    model = DCDC(n_clusters="2-6", random_state=0, epochs=8).fit(images)
    assert model.n_clusters_ == 3
    assert model.cluster_number_.is_settled
    assert model.score(images, kinds) > 0.95

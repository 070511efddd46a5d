"""From vectors or photos to a recipe on features: what is chosen, what is filled in and refused."""

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.data import from_arrays, from_vectors
from dcdc.errors import InputError
from dcdc.prepare import pretrained_choice
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import on_features

ON_CPU = {"train.device": "cpu"}
EFFICIENTNET = "efficientnet-lite0"


@pytest.fixture(scope="module")
def vectors():
    random = np.random.default_rng(0)
    return from_vectors(random.standard_normal((60, 9)), targets=np.arange(60) % 3)


@pytest.fixture(scope="module")
def photos():
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), np.uint8)
    return from_arrays(images, targets=np.arange(40) % 2)


@pytest.fixture
def installed(monkeypatch):
    """As for a user: nothing in the environment speaks against a pretrained backbone."""
    monkeypatch.delenv("DCDC_BACKBONE")


def chosen(source, values=None, **how):
    return prepare_run(source, Overrides(ON_CPU | (values or {})), **how)


def test_vectors_take_the_recipe_for_features(vectors):
    config = chosen(vectors).config
    assert (config.network.backbone, config.network.frozen) == ("vectors", False)
    assert (config.data.n_features, config.data.size, config.n_clusters) == (9, None, 3)
    assert list(config.active_phases) == ["heads"]


def test_a_large_set_of_vectors_is_seen_a_few_times_and_a_small_one_often():
    steps = {n: on_features(n, 10, "vectors").phases[0] for n in (50, 1_000, 10_000, 10**6)}
    assert steps[10**6].epochs == 2
    for n, heads in steps.items():
        assert heads.epochs * (n // heads.batch_size) >= 400
        assert heads.batch_size <= n // 2
        assert heads.neighbours < n


@pytest.mark.usefixtures("installed")
def test_photos_take_the_installed_backbone_by_themselves(photos):
    prepared = chosen(photos)
    network = prepared.config.network
    assert prepared.by_itself
    assert (network.backbone, network.frozen) == (EFFICIENTNET, True)
    assert (network.input_size, network.mean, network.std) == (224, (0.5,) * 3, (0.5,) * 3)
    assert prepared.config.data.size == 32


@pytest.mark.parametrize(
    "values",
    [
        {"network.backbone": "scratch"},
        {"network.backbone": "small"},
        {"augment.flip": 0.5},
        {"contrast.epochs": 1, "contrast.batch_size": 8, "phases": ("contrast", "heads")},
        {"network.over_clusters": 6},
    ],
)
@pytest.mark.usefixtures("installed")
def test_they_do_not_where_somebody_speaks_of_a_training(photos, values):
    assert chosen(photos, values).config.network.backbone != EFFICIENTNET


def test_the_environment_may_name_another_or_none(photos, monkeypatch):
    monkeypatch.setenv("DCDC_BACKBONE", EFFICIENTNET)
    assert chosen(photos).config.network.frozen
    monkeypatch.setenv("DCDC_BACKBONE", "scratch")
    assert not chosen(photos).config.network.frozen
    monkeypatch.setenv("DCDC_BACKBONE", "resnet18")
    with pytest.raises(InputError, match="DCDC_BACKBONE=resnet18 names no pretrained backbone"):
        chosen(photos)


@pytest.mark.usefixtures("installed")
def test_where_none_is_installed_they_train_from_scratch(photos, monkeypatch):
    monkeypatch.setattr(pretrained_choice, "is_available", lambda: False)
    prepared = chosen(photos)
    assert not prepared.by_itself
    assert not prepared.config.network.frozen


@pytest.mark.parametrize("shape", [(40, 96, 96, 1), (40, 12, 12, 3)])
@pytest.mark.usefixtures("installed")
def test_grey_and_tiny_images_are_no_photos_and_are_read_again_small(shape):
    def read(_data, largest_side):
        asked.append(largest_side)
        side = min(largest_side, shape[1])
        images = np.random.default_rng(0).integers(0, 256, (40, side, side, shape[3]), np.uint8)
        return from_arrays(images)

    asked = []
    prepared = chosen("photos", {"n_clusters": 2}, read=read)
    assert prepared.config.network.backbone == "small"
    assert asked == ([224, 32] if shape[1] > 32 else [224])


def test_a_named_backbone_is_frozen_or_fine_tuned(photos):
    named = {"network.backbone": EFFICIENTNET}
    frozen = chosen(photos, named)
    assert not frozen.by_itself
    assert frozen.config.network.frozen
    tuned = chosen(photos, named | {"network.frozen": False}).config
    assert not tuned.network.frozen
    assert tuned.network.backbone_rate < 1
    assert tuned.augment.crop_scale is not None


def test_grey_photos_have_the_mean_of_the_backbones_statistics():
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32), np.uint8)
    grey = from_arrays(images)
    config = chosen(grey, {"network.backbone": EFFICIENTNET, "n_clusters": 2}).config
    assert (config.network.mean, config.network.std) == ((0.5,), (0.5,))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"network.backbone": "resnet18"}, "feature vectors go past the backbone resnet18"),
        ({"network.sobel": True}, "are for images, not for feature vectors"),
        ({"heads.neighbours": 0}, "neighbours take their place: set heads.neighbours to 1"),
        ({"data.n_features": 4}, "vectors of 4 features, these have 9"),
        (
            {"phases": ("contrast", "heads"), "contrast.epochs": 1, "contrast.batch_size": 8},
            "the phase contrast perturbs images",
        ),
        ({"n_clusters": 61}, "60 images cannot fill 61 clusters"),
    ],
)
def test_what_vectors_do_not_allow_is_refused_in_a_line(vectors, values, told):
    with pytest.raises(InputError) as refused:
        chosen(vectors, values)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_images_do_not_allow_is_refused_in_a_line(photos):
    with pytest.raises(InputError, match="backbone small has no pretrained weights to freeze"):
        chosen(photos, {"network.backbone": "small", "network.frozen": True})
    with pytest.raises(InputError, match="is for feature vectors, these are images"):
        chosen(photos, {"network.backbone": "vectors"})
    with pytest.raises(InputError, match=r"'efficientnet-lite'.*efficientnet-lite0"):
        chosen(photos, {"network.backbone": "efficientnet-lite"})


def test_one_row_is_refused_in_a_line(tmp_path):
    file = tmp_path / "one.npy"
    np.save(file, np.ones((1, 4), np.float32))
    with pytest.raises(InputError, match=r"one\.npy has 1 row") as refused:
        chosen(str(file), {"n_clusters": 2})
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="one image alone"):
        chosen(from_vectors(np.ones((1, 4)), may_be_equal=True), {"n_clusters": 2})


def test_resolving_twice_changes_nothing(vectors, photos):
    for data, values in ((vectors, {}), (photos, {"network.backbone": EFFICIENTNET})):
        config = chosen(data, values).config
        assert resolve(config, data) == config
        assert with_values(config, {}) == config

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.estimator.settings import overrides_of, restart_seed, seed_of, without_features
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset


def test_an_integer_is_the_seed_itself():
    assert seed_of(2**40) == 2**40
    assert seed_of(np.int64(7)) == 7


def test_a_random_state_draws_a_seed_and_moves_on():
    state = np.random.RandomState(0)
    first, second = seed_of(state), seed_of(state)
    assert first != second
    assert seed_of(np.random.RandomState(0)) == first
    np.random.seed(3)
    drawn = seed_of(None)
    np.random.seed(3)
    assert seed_of(None) == drawn


def test_the_first_restart_is_the_only_one_of_a_single_training():
    seeds = [restart_seed(5, number) for number in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4


PARAMETERS = {
    "sizes": None,
    "outliers": False,
    "n_clusters": 4,
    "preset": None,
    "epochs": None,
    "batch_size": None,
    "device": "cpu",
    "settings": None,
    "fine_tune": False,
}


def test_parameters_that_are_given_become_overrides():
    alone = overrides_of(PARAMETERS, 7)
    assert alone.values == {"n_clusters": 4, "train.device": "cpu", "train.seed": 7}
    given = {"epochs": np.int64(3), "batch_size": 9, "preset": "digits", "n_clusters": None}
    overrides = overrides_of(PARAMETERS | given, 0)
    assert overrides.preset == "digits"
    assert "n_clusters" not in overrides.values
    assert (overrides.values["epochs"], overrides.values["batch_size"]) == (3, 9)
    assert type(overrides.values["epochs"]) is int


def test_settings_win_over_parameters():
    settings = {"heads.epochs": 5, "train.seed": 1, "contrast.epochs": np.int64(2)}
    overrides = overrides_of(PARAMETERS | {"epochs": 3, "settings": settings}, 7)
    found = [overrides.values[key] for key in settings]
    assert found == [5, 1, 2]
    with pytest.raises(InputError, match=r"^settings='x=1' is no dict: give {'section.key': val"):
        overrides_of(PARAMETERS | {"settings": "x=1"}, 0)


def test_a_warm_start_does_not_ask_how_the_heads_begin():
    """Of two epochs for features there may be fewer epochs left."""
    settings = {"heads.over_clustering_first": 2, "heads.initialisation": "k-means"}
    given = PARAMETERS | {"epochs": 1, "settings": settings | {"heads.n_repeats": 2}}
    with pytest.raises(InputError, match="a share of the epochs, or fewer than all 1"):
        overrides_of(given, 0).alone()
    values = overrides_of(given, 0, going_on=True).values
    assert values.keys() >= {"epochs", "heads.n_repeats"}
    assert not values.keys() & settings.keys()


def test_a_backbone_goes_by_its_name_and_is_frozen_unless_it_is_fine_tuned():
    assert "network.backbone" not in overrides_of(PARAMETERS, 0).values
    frozen = overrides_of(PARAMETERS, 0, "efficientnet-lite0").values
    assert frozen["network.backbone"] == "efficientnet-lite0"
    assert "network.frozen" not in frozen
    tuned = overrides_of(PARAMETERS | {"fine_tune": True}, 0, "efficientnet-lite0").values
    assert tuned["network.frozen"] is False


def test_a_warm_start_leaves_out_what_finds_features_and_begins_heads():
    values = {"heads.neighbours": 3, "heads.epochs": 9, "heads.order": "joint"}
    values |= {"heads.over_clustering_first": 5.0, "network.over_clusters": 70}
    phases = {"phases": ("contrast", "heads", "self_label")}
    config = without_features(with_values(preset("stl10"), phases | values))
    assert list(config.active_phases) == ["heads", "self_label"]
    heads = heads_of(config)
    assert (heads.over_clustering_first, heads.initialisation) == (0, "random")
    assert (heads.neighbours, heads.epochs, heads.order) == (3, 9, "joint")


def test_a_warm_start_fits_no_other_head_where_something_else_trains_it():
    assert without_features(preset("cifar10")).phase_names == ("self_label",)
    alone = with_values(preset("cifar10"), {"phases": ("discriminate", "frozen_heads")})
    assert without_features(alone).phase_names == ("frozen_heads",)


def test_a_warm_start_does_so_for_every_phase_of_the_heads():
    twice = with_values(preset("digits"), {"phases": ("contrast", "heads", "heads-2")})
    twice = with_values(twice, {"heads-2.initialisation": "k-means", "contrast.epochs": 2})
    config = without_features(twice)
    assert config.phase_names == ("heads", "heads-2")
    assert {phase.initialisation for phase in config.phases} == {"random"}

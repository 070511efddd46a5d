"""The phases of a plan are those that a config gives epochs."""

from dataclasses import replace

import pytest

from dcdc.config import with_values
from dcdc.prepare.assembly import build_network, build_plan
from dcdc.prepare.resolve import resolve

ALL = ("contrast", "heads", "self_label")


@pytest.fixture
def plan_of(tiny_config, tiny_set):
    def build(values=None, image_set=tiny_set):
        config = resolve(with_values(tiny_config, values or {}), image_set)
        return build_plan(config, image_set, build_network(config))

    return build


@pytest.mark.parametrize(
    ("epochs", "names"),
    [
        ({}, ("heads",)),
        ({"self_label.epochs": 1}, ("heads", "self_label")),
        ({"contrast.epochs": 1, "self_label.epochs": 1}, ALL),
        ({"byol.epochs": 1}, ("byol", "heads")),
    ],
)
def test_a_phase_without_epochs_is_not_in_the_plan(plan_of, epochs, names):
    plan = plan_of(
        {"phases": ("byol", *ALL), "contrast.batch_size": 16, "byol.batch_size": 16} | epochs
    )
    assert plan.names == names
    assert tuple(phase.kind for phase in plan.phases) == names


def test_a_kind_that_comes_twice_is_twice_in_the_plan(plan_of):
    plan = plan_of({"phases": ("heads", "heads-2"), "heads-2.epochs": 3, "heads-2.batch_size": 8})
    assert plan.names == ("heads", "heads-2")
    assert plan.batch_sizes == (16, 8)
    assert plan.epochs == 4 + 3


def test_each_phase_has_the_settings_of_its_own_section(plan_of):
    settings = ("epochs", "batch_size", "learning_rate", "schedule")
    wanted = {
        "contrast": (2, 11, 0.1, "constant"),
        "heads": (3, 12, 0.2, "cosine"),
        "self_label": (4, 13, 0.3, "constant"),
    }
    values = {
        f"{name}.{key}": value
        for name, found in wanted.items()
        for key, value in zip(settings, found, strict=True)
    }
    plan = plan_of({"phases": ALL} | values)
    for name, phase in zip(plan.names, plan.phases, strict=True):
        assert tuple(getattr(phase, key) for key in settings) == wanted[name]
    assert plan.batch_sizes == (11, 12, 13)


def test_self_labels_come_in_the_batches_of_the_heads_where_they_have_none_of_their_own(plan_of):
    values = {"phases": ("heads", "self_label"), "self_label.epochs": 1, "heads.batch_size": 12}
    assert plan_of(values).batch_sizes == (12, 12)


@pytest.mark.parametrize(
    ("features", "remedies"),
    [
        (
            "contrast",
            "try a lower {contrast.learning_rate} (now 0.001) or a higher {contrast.temperature}",
        ),
        ("byol", "try a lower {byol.learning_rate} (now 0.001)"),
    ],
)
def test_a_phase_knows_its_temperature_if_it_has_one(plan_of, features, remedies):
    names = (features, "heads", "self_label")
    values = {f"{features}.epochs": 1, f"{features}.batch_size": 16, "self_label.epochs": 1}
    plan = plan_of({"phases": names} | values)
    assert [phase.remedies(name) for name, phase in zip(names, plan.phases, strict=True)] == [
        remedies,
        "try a lower {heads.learning_rate} (now 0.001) or a higher {heads.temperature}",
        "try a lower {self_label.learning_rate} (now 0.0001)",
    ]


def test_the_over_clustering_head_is_left_out_where_it_has_no_clusters(plan_of):
    assert plan_of({"network.over_clusters": 6}).heads == ("cluster_head", "over_clustering_head")
    assert plan_of({"network.over_clusters": 0}).heads == ("cluster_head",)


def test_extra_images_are_counted(plan_of, tiny_set):
    assert plan_of().n_extra == 0
    plan = plan_of(image_set=replace(tiny_set, extra=tiny_set.images[:20]))
    assert (plan.n_images, plan.n_extra) == (48, 20)

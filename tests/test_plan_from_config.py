"""The phases of a plan are those that a config gives epochs."""

from dataclasses import replace

import pytest

from dcdc.config import with_values
from dcdc.engine.plan import HEADS, INSTANCE, SELF_LABEL
from dcdc.plan_from_config import build_plan


@pytest.mark.parametrize(
    ("epochs", "kinds"),
    [
        ({}, [HEADS]),
        ({"self_label.epochs": 1}, [HEADS, SELF_LABEL]),
        ({"instance.epochs": 1, "self_label.epochs": 1}, [INSTANCE, HEADS, SELF_LABEL]),
    ],
)
def test_a_phase_without_epochs_is_not_in_the_plan(tiny_config, tiny_set, epochs, kinds):
    plan = build_plan(with_values(tiny_config, epochs), tiny_set)
    assert [phase.kind for phase in plan.phases] == kinds


def test_each_phase_has_the_settings_of_its_own_section(tiny_config, tiny_set):
    names = ("epochs", "batch_size", "learning_rate", "schedule")
    sections = {
        INSTANCE: ("instance", (2, 11, 0.1, "constant")),
        HEADS: ("train", (3, 12, 0.2, "cosine")),
        SELF_LABEL: ("self_label", (4, 13, 0.3, "constant")),
    }
    values = {
        f"{section}.{name}": value
        for section, wanted in sections.values()
        for name, value in zip(names, wanted, strict=True)
    }
    plan = build_plan(with_values(tiny_config, values), tiny_set)
    for phase in plan.phases:
        assert tuple(getattr(phase, name) for name in names) == sections[phase.kind][1]


def test_self_labels_come_in_the_batches_of_the_heads_where_they_have_none_of_their_own(
    tiny_config, tiny_set
):
    values = {"self_label.epochs": 1, "train.batch_size": 12}
    plan = build_plan(with_values(tiny_config, values), tiny_set)
    assert [phase.batch_size for phase in plan.phases] == [12, 12]


@pytest.mark.parametrize(
    ("kind", "temperature"), [("contrast", "instance.temperature"), ("prediction", "")]
)
def test_a_phase_knows_its_temperature_if_it_has_one(tiny_config, tiny_set, kind, temperature):
    values = {"instance.epochs": 1, "self_label.epochs": 1, "instance.kind": kind}
    plan = build_plan(with_values(tiny_config, values), tiny_set)
    assert [phase.temperature for phase in plan.phases] == [temperature, "loss.temperature", ""]


def test_the_over_clustering_head_is_left_out_where_it_has_no_clusters(tiny_config, tiny_set):
    def heads(n_over_clusters):
        config = with_values(tiny_config, {"network.over_clusters": n_over_clusters})
        return build_plan(config, tiny_set).phases[0].heads

    assert heads(6) == ("cluster_head", "over_clustering_head")
    assert heads(0) == ("cluster_head",)


def test_extra_images_are_counted(tiny_config, tiny_set):
    assert build_plan(tiny_config, tiny_set).n_extra == 0
    plan = build_plan(tiny_config, replace(tiny_set, extra=tiny_set.images[:20]))
    assert (plan.n_images, plan.n_extra) == (48, 20)

"""Phases, epochs, passes and steps, in plain numbers."""

import pytest

from dcdc.engine.plan import HEADS, INSTANCE, SELF_LABEL, Phase, Plan


def plan(**changes) -> Plan:
    n_extra = changes.pop("n_extra", 0)
    given = {"epochs": 6, "batch_size": 16, "heads": ("cluster", "over"), "learning_rate": 1e-3}
    phase = Phase(HEADS, **(given | changes))
    return Plan((phase,), n_images=50, n_extra=n_extra, cluster_head="cluster", seed=0)


def three_phases(n_extra: int = 0) -> Plan:
    phases = (
        Phase(INSTANCE, epochs=3, batch_size=20, heads=("projection",), learning_rate=1e-2),
        Phase(
            HEADS,
            epochs=4,
            batch_size=16,
            heads=("cluster", "over"),
            learning_rate=1e-3,
            over_clustering_first=1,
        ),
        Phase(SELF_LABEL, epochs=2, batch_size=25, heads=("cluster",), learning_rate=1e-4),
    )
    return Plan(phases, n_images=50, n_extra=n_extra, cluster_head="cluster", seed=0)


def test_heads_alternate_or_train_together():
    assert plan().passes(1) == (("over",), ("cluster",))
    assert plan(head_training="joint").passes(1) == (("cluster", "over"),)
    early = plan(over_clustering_first=2)
    assert [early.passes(epoch) for epoch in (1, 2, 3)] == [
        (("over",),),
        (("over",),),
        (("over",), ("cluster",)),
    ]
    assert [early.steps(epoch) for epoch in (2, 3)] == [3, 6]


def test_extra_images_are_shown_to_the_over_clustering_head_alone():
    joint = plan(n_extra=30, head_training="joint", over_clustering_first=1)
    assert plan(n_extra=30).steps(1) == 80 // 16 + 50 // 16
    assert [joint.steps(epoch) for epoch in (1, 2)] == [80 // 16, 50 // 16]


def test_every_epoch_belongs_to_a_phase_and_has_its_number_there():
    built = three_phases()
    assert built.epochs == 9
    found = [built.at(epoch) for epoch in range(1, 10)]
    assert [(phase.kind, number) for phase, number in found] == [
        *((INSTANCE, number) for number in (1, 2, 3)),
        *((HEADS, number) for number in (1, 2, 3, 4)),
        *((SELF_LABEL, number) for number in (1, 2)),
    ]


@pytest.mark.parametrize("epoch", [-1, 0, 10])
def test_an_epoch_that_the_plan_does_not_have_is_refused(epoch):
    with pytest.raises(ValueError, match=f"epoch {epoch} is not one of 1 to 9"):
        three_phases().at(epoch)


def test_passes_follow_the_phase_and_the_number_within_it():
    built = three_phases()
    assert [built.passes(epoch) for epoch in (3, 4, 5, 8)] == [
        (("projection",),),
        (("over",),),  # the first of its phase
        (("over",), ("cluster",)),
        (("cluster",),),
    ]


def test_steps_are_of_the_phase_s_own_batches():
    built = three_phases()
    of_epoch = [2, 2, 2, 3, 6, 6, 6, 2, 2]
    assert [built.steps(epoch) for epoch in range(1, 10)] == of_epoch
    assert [built.steps_after(epoch) for epoch in range(10)] == [
        sum(of_epoch[epoch:]) for epoch in range(10)
    ]


def test_extra_images_are_in_every_pass_without_the_cluster_head():
    built = three_phases(n_extra=30)
    assert [built.steps(epoch) for epoch in (1, 4, 5, 8)] == [
        80 // 20,
        80 // 16,
        80 // 16 + 50 // 16,
        50 // 25,
    ]


def test_a_phase_is_found_by_its_kind():
    assert three_phases().phase(SELF_LABEL).batch_size == 25
    with pytest.raises(ValueError, match="not enough values"):
        plan().phase(INSTANCE)


def test_the_cluster_head_begins_after_the_epochs_of_the_others():
    assert plan().cluster_head_begins == 1
    assert plan(over_clustering_first=2).cluster_head_begins == 3
    assert three_phases().cluster_head_begins == 3 + 1 + 1

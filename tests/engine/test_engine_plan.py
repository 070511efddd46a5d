"""Phases, epochs, passes and steps, in plain numbers."""

import pytest

from dcdc.engine.plan import Place, Plan
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel

CLUSTER, OVER = (CLUSTER_HEAD,), (OVER_CLUSTERING_HEAD,)
BOTH = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)


def plan(*phases, batch_sizes, n_extra=0) -> Plan:
    names = tuple(phase.kind for phase in phases)
    return Plan(phases, names, batch_sizes, BOTH, n_images=50, n_extra=n_extra, seed=0)


def heads_alone(n_extra=0, **settings) -> Plan:
    return plan(Heads(epochs=6, **settings), batch_sizes=(16,), n_extra=n_extra)


def three_phases(n_extra=0) -> Plan:
    return plan(
        Contrast(epochs=3),
        Heads(epochs=4, over_clustering_first=1),
        SelfLabel(epochs=2),
        batch_sizes=(20, 16, 25),
        n_extra=n_extra,
    )


def test_heads_alternate_or_train_together():
    assert heads_alone().passes(1) == (OVER, CLUSTER)
    assert heads_alone(order="joint").passes(1) == (BOTH,)
    early = heads_alone(over_clustering_first=2)
    assert [early.passes(epoch) for epoch in (1, 2, 3)] == [(OVER,), (OVER,), (OVER, CLUSTER)]
    assert [early.steps(epoch) for epoch in (2, 3)] == [3, 6]


def test_extra_images_are_shown_to_the_over_clustering_head_alone():
    joint = heads_alone(n_extra=30, order="joint", over_clustering_first=1)
    assert heads_alone(n_extra=30).steps(1) == 80 // 16 + 50 // 16
    assert [joint.steps(epoch) for epoch in (1, 2)] == [80 // 16, 50 // 16]


def test_every_epoch_belongs_to_a_phase_and_has_its_number_there():
    built = three_phases()
    contrast, heads, self_label = built.phases
    assert built.epochs == 9
    assert [built.at(epoch) for epoch in range(1, 10)] == [
        *(Place(0, contrast, number) for number in (1, 2, 3)),
        *(Place(1, heads, number) for number in (1, 2, 3, 4)),
        *(Place(2, self_label, number) for number in (1, 2)),
    ]


@pytest.mark.parametrize("epoch", [-1, 0, 10])
def test_an_epoch_that_the_plan_does_not_have_is_refused(epoch):
    with pytest.raises(ValueError, match=f"epoch {epoch} is not one of 1 to 9"):
        three_phases().at(epoch)


def test_passes_follow_the_phase_and_the_number_within_it():
    built = three_phases()
    assert [built.passes(epoch) for epoch in (3, 4, 5, 8)] == [
        (("contrast",),),
        (OVER,),  # the first of its phase
        (OVER, CLUSTER),
        (CLUSTER,),
    ]


def test_steps_are_of_the_phase_s_own_batches():
    built = three_phases()
    assert [built.batch_size(epoch) for epoch in (1, 4, 8)] == [20, 16, 25]
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


def test_the_cluster_head_begins_after_the_epochs_of_the_others():
    def begins(built):
        epoch, phase = built.cluster_head_begins()
        assert isinstance(phase, Heads)
        trained = [built.trains_cluster_head(number) for number in range(1, built.epochs + 1)]
        assert trained == [number >= epoch for number in range(1, built.epochs + 1)]
        return epoch

    assert begins(heads_alone()) == 1
    assert begins(heads_alone(over_clustering_first=2)) == 3
    assert begins(three_phases()) == 3 + 1 + 1


def test_a_plan_without_the_cluster_head_is_told_so():
    with pytest.raises(ValueError, match="no phase trains the cluster head"):
        plan(Contrast(epochs=3), batch_sizes=(20,)).cluster_head_begins()


def test_two_phases_of_one_kind_keep_their_own_numbers():
    built = plan(Heads(epochs=2), Heads(epochs=1, order="joint"), batch_sizes=(16, 25))
    assert [built.at(epoch).index for epoch in (1, 2, 3)] == [0, 0, 1]
    assert [built.passes(epoch) for epoch in (2, 3)] == [(OVER, CLUSTER), (BOTH,)]
    assert built.steps(3) == 2

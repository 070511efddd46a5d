"""What a step of the corrections phase minimises, and which images it sees."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of

from dcdc.engine.edits import OUTSIDE
from dcdc.engine.taught import Taught
from dcdc.errors import InputError
from dcdc.losses import label_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.refine import APART, LABELS, SPOKEN_OF, UNIT, WEIGHTS, Refine

PHASE = Refine(epochs=2, batch_size=16, whole_network=True)


def taught(n_images, **more):
    """Of the tiny set's own kinds, with two labels and an image that belongs to none."""
    clusters = (np.arange(n_images) % 3).astype(np.int32)
    placed = np.zeros(n_images, bool)
    clusters[4], clusters[7], clusters[9] = 2, 1, OUTSIDE
    placed[[4, 7, 9]] = True
    pairs = {name: np.array(each, np.int64).reshape(-1, 2) for name, each in more.items()}
    return Taught(clusters, placed, ("",) * 3, **pairs, doubt=0.2)


def begun(tiny_config, tiny_set, phase=PHASE, **pairs):
    context = context_of(replace(tiny_config, n_clusters=3), tiny_set, phase)
    context.taught = taught(tiny_set.n_images, **pairs)
    phase.begin(context)
    return context


@pytest.fixture
def context(tiny_config, tiny_set):
    return begun(tiny_config, tiny_set, together=[(0, 3)], apart=[(1, 2), (1, 11)])


def test_what_it_keeps(context):
    state = {name: tensor.tolist() for name, tensor in context.state.items()}
    labels, weights = state[LABELS], state[WEIGHTS]
    assert (labels[4], labels[7]) == (2, 1)
    assert [row for row, weight in enumerate(weights) if not weight] == [0, 1, 2, 3, 9, 11]
    assert sorted(state[SPOKEN_OF]) == [0, 1, 2, 3, 4, 7, 11]
    assert state[UNIT][0] == state[UNIT][3]
    assert len(set(state[UNIT])) == 48 - 1
    assert state[APART] == sorted([-1, 1 * 48 + 2, 2 * 48 + 1, 1 * 48 + 11, 11 * 48 + 1])


def test_the_head_begins_with_the_corrected_clusters(context):
    answers = context.model.assign_store(context.store).assignments
    kinds = np.arange(48) % 3
    others = np.setdiff1d(np.arange(48), [4, 7, 9])
    assert (answers[others] == kinds[others]).mean() > 0.9


def test_a_part_of_every_batch_are_images_that_people_spoke_of(context):
    batches = torch.arange(48).view(3, 16)
    drawn = PHASE.batches(batches, context, torch.Generator().manual_seed(0))
    assert drawn.shape == batches.shape
    spoken = set(context.state[SPOKEN_OF].tolist())
    assert set(drawn[:, :2].flatten().tolist()) <= spoken
    assert torch.equal(drawn[:, 2:], batches[:, 2:])
    again = PHASE.batches(batches, context, torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    seen = {
        row
        for seed in range(30)
        for row in PHASE.batches(batches, context, torch.Generator().manual_seed(seed))[:, :2]
        .flatten()
        .tolist()
    }
    assert seen == spoken


def test_both_copies_learn_labels_and_those_of_pairs_that_they_belong_together_or_apart(context):
    phase = replace(PHASE, label_weight=0.5, pair_weight=2.0)
    objective = phase.objective(context, TOOLS)
    rows = torch.tensor([0, 3, 5, 9, *range(20, 32)])
    images = context.store.batch(rows)
    objective.see(rows)
    copies = copies_of(objective, images)
    total, terms = objective.loss(context.network, copies, (CLUSTER_HEAD,))
    labels, weights = context.state[LABELS][rows], context.state[WEIGHTS][rows]
    expected, pairs = 0.0, 0.0
    for copy in copies:
        assign = context.network(copy).assign[CLUSTER_HEAD]
        expected += label_loss(assign, labels, weights).item() / 2
        cosine = torch.nn.functional.cosine_similarity(assign[0], assign[1], dim=0)
        pairs -= cosine.clamp(1e-4, 1 - 1e-4).log().item() / 2
    assert terms["labels"].item() == pytest.approx(expected, rel=1e-5)
    assert terms["pairs"].item() == pytest.approx(pairs, rel=1e-4)
    assert terms["corrected"].item() == 0  # rows 0 and 3 have pairs alone
    assert total.item() == pytest.approx(expected + 2 * pairs, rel=1e-4)


def test_merges_and_splits_change_the_head_and_speak_of_no_image(tiny_config, tiny_set):
    context = context_of(replace(tiny_config, n_clusters=3), tiny_set, PHASE)
    clusters = (np.arange(48) % 3).astype(np.int32)
    context.taught = Taught(clusters, np.zeros(48, bool), ("",) * 3)
    PHASE.begin(context)
    answers = context.model.assign_store(context.store).assignments
    assert (answers == clusters).mean() > 0.9
    batches = torch.arange(48).view(3, 16)
    assert PHASE.batches(batches, context, torch.Generator()) is batches
    objective = PHASE.objective(context, TOOLS)
    objective.see(batches[0])
    copies = copies_of(objective, context.store.batch(batches[0]))
    total, terms = objective.loss(context.network, copies, (CLUSTER_HEAD,))
    assert terms.keys() == {"labels"}
    assert total == terms["labels"]


def test_labels_do_not_make_it_surer_than_the_run_was(context):
    with torch.no_grad():
        context.network.heads[CLUSTER_HEAD].weight.mul_(50)
        context.network.heads[CLUSTER_HEAD].bias.mul_(50)
    before = context.model.assign_store(context.store)
    assert before.confidence.mean() > 0.95
    PHASE.end_epoch(context, {})
    after = context.model.assign_store(context.store)
    assert after.confidence.mean() == pytest.approx(0.8, abs=0.01)
    assert np.array_equal(after.assignments, before.assignments)
    PHASE.end_epoch(context, {})
    assert context.model.assign_store(context.store).confidence.mean() == pytest.approx(
        0.8, abs=0.01
    )


def test_images_of_none_change_nothing_in_the_head(tiny_config, tiny_set):
    """Whatever they show."""
    first = begun(tiny_config, tiny_set)
    images = tiny_set.images.copy()
    images[9] = 255 - images[9]
    second = begun(tiny_config, replace(tiny_set, images=images))
    second.model.network.normalise.load_state_dict(first.model.network.normalise.state_dict())
    PHASE.begin(second)
    for ours, theirs in zip(
        *(context.network.heads[CLUSTER_HEAD].parameters() for context in (first, second)),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


def test_the_cluster_head_trains_alone_in_one_pass():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert PHASE.passes(1, heads) == ((CLUSTER_HEAD,),)
    assert PHASE.is_scored
    assert not PHASE.on_features
    assert replace(PHASE, whole_network=False).on_features


def test_it_needs_corrections(tiny_config, tiny_set):
    context = context_of(tiny_config, tiny_set, PHASE)
    with pytest.raises(InputError, match="learns from corrections"):
        PHASE.begin(context)


def test_one_head_alone(tiny_config):
    network = replace(tiny_config.network, sub_heads=3)
    with pytest.raises(InputError, match=r"network\.sub_heads"):
        replace(tiny_config, network=network, phases=(PHASE,))

"""The heads phase: its loss spelled out, its passes, and what it does before and after epochs."""

from dataclasses import replace

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, some_images

from dcdc.engine.neighbours import nearest_neighbours
from dcdc.errors import InputError
from dcdc.losses import LOSSES, DcdcLoss, HeadLoss, dcdc_loss, iic_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads, heads_of

BOTH = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
OVER, CLUSTER = (OVER_CLUSTERING_HEAD,), (CLUSTER_HEAD,)
PHASE = Heads(epochs=4, batch_size=16, n_repeats=2)


@pytest.fixture
def context(tiny_config, tiny_set):
    return context_of(tiny_config, tiny_set, PHASE)


def test_the_loss_is_that_of_each_head_on_both_copies(context):
    network, images = context.network, some_images(context)
    objective = PHASE.objective(context, TOOLS)
    generator = torch.Generator().manual_seed(3)
    original = context.model.original_copy(images, generator)
    perturbed = context.perturbed_copy(2)(images, generator)
    copies = copies_of(objective, images)
    assert torch.equal(copies[0], original)
    assert torch.equal(copies[1], perturbed)
    assert len(perturbed) == 24
    total, terms = objective.loss(network, copies, BOTH)
    wanted = {
        head: dcdc_loss(network(original, BOTH).assign[head], network(perturbed, BOTH).assign[head])
        for head in BOTH
    }
    assert terms == {
        f"{head}/{name}": term for head in BOTH for name, term in wanted[head].terms.items()
    }
    assert total.item() == pytest.approx(sum(loss.total.item() for loss in wanted.values()))


def test_the_loss_takes_the_settings_of_the_phase():
    assign, perturbed = torch.softmax(torch.randn(2, 8, 3, generator=torch.manual_seed(0)), 2)
    settings = {"temperature": 0.3, "sample_weight": 2.0, "class_weight": 0.5}
    settings |= {"balance_weight": 0.1}
    ours = replace(PHASE, **settings).loss_function()(assign, perturbed)
    theirs = dcdc_loss(assign, perturbed, **settings)
    assert ours.total == theirs.total
    assert ours.terms == theirs.terms
    assert ours.total != dcdc_loss(assign, perturbed).total
    by_information = replace(PHASE, loss="iic", **settings).loss_function()(assign, perturbed)
    assert by_information.total == iic_loss(assign, perturbed).total


def test_strong_copies_take_the_place_of_both(context):
    images = some_images(context)
    for partners, seen in ((0, (images, images)), (2, images.chunk(2))):
        phase = replace(PHASE, copies="strong", neighbours=partners)
        generator = torch.Generator().manual_seed(3)
        strong = [context.strong_copy(n) for n in (1, 2)]
        draws = [copy.draw(part, generator) for copy, part in zip(strong, seen, strict=True)]
        copies = copies_of(phase.objective(context, TOOLS), images)
        for found, copy, part, draw in zip(copies, strong, seen, draws, strict=True):
            assert torch.equal(found, copy.apply(part, draw))
    assert context.strong_copy(1).flip == 0.5  # as the perturbed copies


def test_a_loss_of_ones_own_is_taken_by_its_name_and_settings(context, monkeypatch):
    def far_apart(assign, perturbed, temperature):
        gap = (assign.repeat(len(perturbed) // len(assign), 1) - perturbed).square().mean()
        return DcdcLoss(gap / temperature, {"gap": gap})

    monkeypatch.setitem(LOSSES._entries, "far-apart", HeadLoss(far_apart, ("temperature",)))
    objective = replace(PHASE, loss="far-apart", temperature=0.25).objective(context, TOOLS)
    copies = copies_of(objective, some_images(context))
    total, terms = objective.loss(context.network, copies, CLUSTER)
    assert terms.keys() == {f"{CLUSTER_HEAD}/gap"}
    torch.testing.assert_close(total, 4 * terms[f"{CLUSTER_HEAD}/gap"])


def test_an_unknown_loss_is_told_the_known_ones():
    with pytest.raises(InputError, match=r"unknown loss 'dcdcc'; did you mean 'dcdc'\?.*dcdc, iic"):
        replace(PHASE, loss="dcdcc").loss_function()


def test_heads_alternate_or_train_together_after_the_first_epochs():
    first = replace(PHASE, over_clustering_first=2)
    assert [first.passes(number, BOTH) for number in (2, 3)] == [(OVER,), (OVER, CLUSTER)]
    joint = replace(first, order="joint")
    assert [joint.passes(number, BOTH) for number in (2, 3)] == [(OVER,), (BOTH,)]
    assert PHASE.passes(1, CLUSTER) == (CLUSTER,)


@pytest.mark.parametrize(
    ("first", "epochs", "alone"),
    [(0, 4, 0), (0.5, 4, 2), (0.6, 14, 8), (0.99, 4, 3), (0.5, 1, 0), (3, 4, 3), (0.1, 2, 0)],
)
def test_epochs_first_are_a_share_or_whole_ones_and_never_all(first, epochs, alone):
    phase = Heads(epochs=epochs, over_clustering_first=first)
    assert phase.epochs_alone == alone
    assert phase.resolved().over_clustering_first == alone
    assert phase.resolved().epochs_alone == alone


def test_the_cluster_head_starts_by_k_means_where_its_epochs_begin(context):
    phase = replace(PHASE, over_clustering_first=2, initialisation="k-means")
    head = context.network.heads[CLUSTER_HEAD]
    weights = []
    for number in (1, 2, 3, 4):
        before = head.weight.detach().clone()
        phase.begin_epoch(context, number)
        weights.append(not torch.equal(head.weight, before))
    assert weights == [False, False, True, False]


def test_a_random_start_leaves_the_cluster_head_as_it_was_drawn(context):
    before = context.network.heads[CLUSTER_HEAD].weight.detach().clone()
    PHASE.begin_epoch(context, 1)
    assert torch.equal(context.network.heads[CLUSTER_HEAD].weight, before)


@pytest.mark.parametrize(
    ("initialisation", "spherical"), [("k-means", False), ("spherical-k-means", True)]
)
def test_k_means_is_by_the_seed_and_on_directions_where_asked(
    context, monkeypatch, initialisation, spherical
):
    told = []
    monkeypatch.setattr(
        "dcdc.phases.heads.initialise_by_k_means",
        lambda model, store, seed, **how: told.append((model, store, seed, how)),
    )
    context.seed = 7
    replace(PHASE, initialisation=initialisation).initialise_cluster_head(context)
    context.sizes, context.outliers = "free", True
    replace(PHASE, initialisation=initialisation).initialise_cluster_head(context)
    given = (context.model, context.store, 7)
    how = {"spherical": spherical, "perturbed_copy": context.perturbed_copy}
    assert told == [
        (*given, {**how, "sizes": "equal", "outliers": False}),
        (*given, {**how, "sizes": "free", "outliers": True}),
    ]


def test_neighbours_are_those_of_the_features_at_the_beginning(context, tiny_set):
    phase = replace(PHASE, neighbours=3)
    phase.begin(context)
    features = context.model.transform(tiny_set.images)
    found = context.state["neighbours"]
    assert torch.equal(found, nearest_neighbours(features, 3, torch.device("cpu")))
    batches = torch.arange(48).view(3, 16)
    both = phase.batches(batches, context, torch.Generator().manual_seed(0))
    assert both.shape == (3, 16 * phase.index_rows())
    images, partners = both.chunk(2, dim=1)
    assert torch.equal(images, batches)
    assert (found[images] == partners[..., None]).any(2).all()


def test_without_neighbours_a_batch_is_its_images_alone(context):
    PHASE.begin(context)
    assert context.state == {}
    batches = torch.arange(48).view(3, 16)
    assert torch.equal(PHASE.batches(batches, context, torch.Generator()), batches)
    assert PHASE.index_rows() == 1


def test_with_neighbours_partners_are_perturbed_in_place_of_the_images(context):
    phase = replace(PHASE, neighbours=3)
    images = some_images(context)
    copies = copies_of(phase.objective(context, TOOLS), images)
    assert [len(copy) for copy in copies] == [6, 12]
    plain = copies_of(phase.without_neighbours().objective(context, TOOLS), images)
    assert [len(copy) for copy in plain] == [12, 24]


def test_more_neighbours_than_other_images_are_refused():
    replace(PHASE, neighbours=47).check_images("heads", 48)
    with pytest.raises(InputError, match="48 images do not have 48 neighbours each"):
        replace(PHASE, neighbours=48).check_images("heads", 48)


def test_the_sub_head_of_the_lowest_loss_answers_after_an_epoch_that_trained_them(
    tiny_config, tiny_set
):
    config = replace(tiny_config, network=replace(tiny_config.network, sub_heads=3))
    context = context_of(config, tiny_set, PHASE)
    names = context.network.sub_heads(CLUSTER_HEAD)
    PHASE.end_epoch(context, dict(zip(names, (3.0, 1.0, 2.0), strict=True)))
    assert context.network.answering_head == names[1]
    PHASE.end_epoch(context, {"loss": 1.0, f"{OVER_CLUSTERING_HEAD}_1": 0.1})
    assert context.network.answering_head == names[1]


def test_it_tries_its_own_rate_and_temperature_where_the_loss_is_not_finite():
    assert PHASE.remedies("heads") == (
        "try a lower {heads.learning_rate} (now 0.001) or a higher {heads.temperature}"
    )


def test_the_heads_of_a_config_are_its_first_phase_of_that_kind(tiny_config):
    later = replace(PHASE, epochs=9)
    config = replace(tiny_config, phases=(Contrast(epochs=1), PHASE, later))
    assert heads_of(config) is PHASE
    assert heads_of(replace(tiny_config, phases=(Contrast(epochs=1),))) == Heads()

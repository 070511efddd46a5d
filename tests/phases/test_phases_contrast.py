"""Instance contrast against the same work spelled out."""

import pytest
import torch
from phase_examples import TOOLS, context_of, copies_of, moved, some_images

from dcdc.losses import nt_xent_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads

PHASE = Contrast(epochs=1, batch_size=12, temperature=0.3, projection=4)


@pytest.fixture
def context(tiny_config, tiny_set):
    return context_of(tiny_config, tiny_set, PHASE, Heads(epochs=1, batch_size=16))


def test_the_copies_find_each_other_by_their_projections(context):
    network, images = context.network, some_images(context)
    objective = PHASE.objective(context, TOOLS)
    perturbed = context.perturbed_copy(2)(images, torch.Generator().manual_seed(3))
    (copies,) = copies_of(objective, images)
    assert torch.equal(copies, perturbed)
    total, terms = objective.loss(network, (copies,), ("contrast",))
    projected = network.parts["contrast"](network.features(perturbed))
    assert projected.shape == (24, 4)
    assert total == nt_xent_loss(*projected.split(12), temperature=0.3)
    assert terms == {"contrast": total}
    total.backward()
    assert any(name.startswith("parts.contrast.") for name in moved(network))
    assert any(name.startswith("backbone.") for name in moved(network))
    assert not any(name.startswith("heads.") for name in moved(network))


def test_no_head_trains_and_nothing_is_scored():
    heads = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert {PHASE.passes(number, heads) for number in (1, 2)} == {(("contrast",),)}
    assert not PHASE.is_scored


def test_it_tries_its_own_rate_and_temperature_where_the_loss_is_not_finite():
    assert PHASE.remedies("contrast-2") == (
        "try a lower {contrast-2.learning_rate} (now 0.001) or a higher {contrast-2.temperature}"
    )

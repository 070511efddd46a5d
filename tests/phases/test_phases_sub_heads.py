"""Several heads of a kind: trained side by side, and the one with the lowest loss answers."""

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.observer import SilentObserver
from dcdc.losses import iic_loss
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD
from dcdc.phases.heads import heads_of
from dcdc.prepare.assembly import build_training, held_out_loss_of
from dcdc.prepare.resolve import resolve
from dcdc.run import load, run
from dcdc.run_folder import RunFolder

NAMES = [f"{CLUSTER_HEAD}_{number}" for number in (1, 2, 3)]


@pytest.fixture
def config(tiny_config):
    return with_values(tiny_config, {"network.sub_heads": 3, "heads.loss": "iic"})


def test_the_loss_is_the_mean_over_sub_heads_and_the_sum_over_roles(config, tiny_set):
    built = build_training(resolve(config, tiny_set), tiny_set, SilentObserver(), None)
    network, objective = built.model.network, built.trainer.steps[0].objective
    images = built.store.batch(torch.arange(16))
    copies = objective.copies(images, objective.draw(images, torch.Generator().manual_seed(0)))
    roles = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    total, terms = objective.loss(network, copies, roles)
    original, perturbed = (network(copy, roles).assign for copy in copies)
    losses = {name: iic_loss(original[name], perturbed[name]).total.item() for name in original}
    assert len(losses) == 6
    for name, loss in losses.items():
        assert terms[name].item() == pytest.approx(loss, rel=1e-5)
    means = {role: np.mean([losses[name] for name in network.sub_heads(role)]) for role in roles}
    for role, mean in means.items():
        assert terms[f"{role}/mutual_information"].item() == pytest.approx(mean, rel=1e-5)
    assert total.item() == pytest.approx(sum(means.values()), rel=1e-5)


def test_the_head_with_the_lowest_loss_of_the_last_epoch_answers(config, tiny_set):
    result = run(config, tiny_set)
    network, last = result.model.network, result.history[-1]
    assert network.answering_head == min(NAMES, key=last.__getitem__)
    others = [name for name in NAMES if name != network.answering_head]
    assert result.assigned.probabilities.shape == (48, 3)
    before = result.model.predict(tiny_set.images)
    assert np.array_equal(before, result.assigned.assignments)
    with torch.no_grad():
        for name in others:
            network.heads[name].weight.zero_()
    assert np.array_equal(result.model.predict(tiny_set.images), before)
    with torch.no_grad():
        network.heads[network.answering_head].weight.zero_()
    assert not np.array_equal(result.model.predict(tiny_set.images), before)


def test_a_loaded_run_answers_by_the_same_head(config, tiny_set, tmp_path):
    config = with_values(config, {"heads.epochs": 1})
    for seed in range(5):  # until another than the first is chosen
        path = tmp_path / str(seed)
        result = run(
            with_values(config, {"train.seed": seed}), tiny_set, folder=RunFolder.create(path)
        )
        if result.model.network.answering_head != NAMES[0]:
            break
    loaded = load(path, "cpu")
    assert loaded.network.answering_head == result.model.network.answering_head != NAMES[0]
    assert np.array_equal(loaded.predict(tiny_set.images), result.assigned.assignments)


def test_the_held_out_loss_is_that_of_the_answering_head(config, tiny_set):
    result = run(config, tiny_set)
    network = result.model.network
    found = []
    for name in NAMES:
        network.answer_by(name)
        found.append(held_out_loss_of(result.config, result.model, tiny_set, seed=0))
    assert len(set(found)) == 3


def test_every_sub_head_starts_by_its_own_k_means(config, tiny_set):
    config = with_values(
        config, {"heads.initialisation": "k-means", "heads.over_clustering_first": 2}
    )
    built = build_training(resolve(config, tiny_set), tiny_set, SilentObserver(), None)
    before = [built.model.network.heads[name].weight.clone() for name in NAMES]
    heads_of(config).initialise_cluster_head(built.trainer.context)
    after = [built.model.network.heads[name].weight for name in NAMES]
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))

"""The heads phase over feature vectors: neighbours as partners, given copies, what it learns."""

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.data import from_vectors
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.losses import dcdc_loss
from dcdc.networks import CLUSTER_HEAD
from dcdc.phases.heads import NEIGHBOURS
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import on_features
from dcdc.run import load, run
from dcdc.run_folder import RunFolder

ON_CPU = {"train.device": "cpu", "train.threads": 1}


def blobs(n: int = 240, n_features: int = 12, n_kinds: int = 4, *, copies: bool = False):
    """Overlapping kinds of vectors."""
    random = np.random.default_rng(0)
    targets = np.arange(n) % n_kinds
    middles = random.standard_normal((n_kinds, n_features))

    def drawn():
        return (middles[targets] + random.standard_normal((n, n_features))).astype(np.float32)

    return from_vectors(drawn(), targets, copies=drawn() if copies else None)


def recipe(vectors, **changes):
    found = on_features(vectors.n_images, vectors.n_classes, "vectors")
    return with_values(found, ON_CPU | {"network.sub_heads": 2, "heads.epochs": 30} | changes)


@pytest.fixture
def built():
    def build(vectors, **changes):
        config = resolve(recipe(vectors, **changes), vectors)
        return build_training(config, vectors, SilentObserver(), None)

    return build


def test_the_loss_is_that_of_vectors_and_their_partners(built):
    training = built(blobs(), **{"network.sub_heads": 1})
    network, objective = training.model.network, training.trainer.steps[0].objective
    rows = training.store.batch(torch.tensor([1, 5, 9, 2, 6, 10]))
    copies = objective.copies(rows, objective.draw(rows, torch.Generator()))
    total, terms = objective.loss(network, copies, (CLUSTER_HEAD,))
    first, second = (network(part).assign[CLUSTER_HEAD] for part in (rows[:3], rows[3:]))
    expected = dcdc_loss(first, second)
    assert total.item() == pytest.approx(expected.total.item(), rel=1e-5)
    for name, term in expected.terms.items():
        assert terms[f"{CLUSTER_HEAD}/{name}"].item() == pytest.approx(term.item(), rel=1e-5)


@pytest.mark.parametrize("copies", [False, True])
def test_partners_are_neighbours_or_the_copies_of_neighbours(built, copies):
    vectors = blobs(copies=copies)
    training = built(vectors)
    context, phase = training.trainer.context, training.trainer.plan.phases[0]
    phase.begin(context)
    batches = torch.arange(240).view(2, 120)
    both = phase.batches(batches, context, torch.Generator().manual_seed(0))
    assert both.shape == (2, 240)
    assert torch.equal(both[:, :120], batches)
    partners = both[:, 120:] - (240 if copies else 0)
    near = context.state[NEIGHBOURS]
    directions = training.model.features(vectors)
    assert torch.equal(near, nearest_neighbours(directions, 10, torch.device("cpu")))
    assert (near[batches] == partners[:, :, None]).any(dim=2).all()


def test_without_neighbours_the_partner_is_the_copy_of_the_same_image(built):
    training = built(blobs(copies=True), **{"heads.neighbours": 0})
    context, phase = training.trainer.context, training.trainer.plan.phases[0]
    phase.begin(context)
    batches = torch.arange(240).view(2, 120)
    both = phase.batches(batches, context, torch.Generator())
    assert torch.equal(both[:, 120:], batches + 240)


def test_heads_that_start_at_random_learn_the_kinds_and_without_steps_do_not():
    """Over four draws of such vectors the difference was .22 to .25."""
    vectors = blobs(400, 24, 8)
    by_chance = {"heads.initialisation": "random", "heads.epochs": 60}

    def accuracy(rate: float) -> float:
        config = recipe(vectors, **by_chance, **{"heads.learning_rate": rate})
        return run(config, vectors).metrics["scores"]["acc"]

    assert accuracy(1e-3) > accuracy(1e-9) + 0.1


def test_one_seed_has_one_answer_and_the_folder_gives_it_again(tmp_path):
    vectors = blobs()
    config = recipe(vectors)
    folder = RunFolder.create(tmp_path / "run")
    first, again = run(config, vectors, folder=folder), run(config, vectors)
    assert np.array_equal(first.assigned.probabilities, again.assigned.probabilities)
    model = load(tmp_path / "run", "cpu")
    assert np.array_equal(model.predict(vectors.vectors), first.assigned.assignments)
    assert model.takes_vectors
    with pytest.raises(InputError, match="trained on vectors of 12 features, these have 5"):
        model.predict(np.zeros((3, 5)))


@pytest.mark.parametrize("copies", [False, True])
def test_a_resumed_run_ends_as_one_that_was_never_stopped(tmp_path, copies):
    vectors = blobs(copies=copies)
    config = recipe(vectors, **{"heads.schedule": "constant", "train.checkpoint_every": 1})
    whole = run(config, vectors)
    folder = RunFolder.create(tmp_path / "run")
    run(with_values(config, {"heads.epochs": 11}), vectors, folder=folder)
    resumed = run(config, vectors, folder=folder, resume=True)
    assert np.array_equal(whole.assigned.probabilities, resumed.assigned.probabilities)

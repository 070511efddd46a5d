"""Which partners feature vectors have: neighbours, or members of the same K-Means cluster."""

import numpy as np
import pytest

from dcdc.data import from_vectors
from dcdc.engine.observer import SilentObserver
from dcdc.engine.partners import cluster_mates, neighbours_are_nearer
from dcdc.phases.heads import NEIGHBOURS
from dcdc.prepare.assembly import build_training
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run


def clouds(seed: int = 0, n: int = 400, n_features: int = 200) -> np.ndarray:
    """Gaussian noise around four middles: neighbours are of the same one in 60 % of the cases."""
    random = np.random.default_rng(seed)
    middles = 0.25 * random.standard_normal((4, n_features))
    noise = random.standard_normal((n, n_features))
    return (middles[np.arange(n) % 4] + noise).astype(np.float32)


def curves(seed: int = 0, n: int = 400, n_features: int = 200) -> np.ndarray:
    """Points along four bent lines: who is near on a line is near in every feature."""
    random = np.random.default_rng(seed)
    along = random.uniform(0, 3, (n, 1))
    bends = np.concatenate([np.sin(along), np.cos(along), np.sin(2 * along)], axis=1)
    lines = random.standard_normal((4, 3, n_features))
    points = np.einsum("nb,nbf->nf", bends, lines[np.arange(n) % 4])
    return (points + 0.3 * random.standard_normal((n, n_features))).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_are_nearer_along_curves_and_not_in_clouds(seed):
    random = np.random.default_rng(seed)
    assert neighbours_are_nearer(curves(seed), 4, 10, random)
    assert not neighbours_are_nearer(clouds(seed), 4, 10, random)


def test_mates_are_others_of_the_same_cluster_and_all_of_them_come():
    assigned = np.array([0, 1, 0, 2, 0, 1])
    drawn = cluster_mates(assigned, 200, np.random.default_rng(0)).tolist()
    assert [set(row) for row in drawn] == [{2, 4}, {5}, {0, 4}, {3}, {0, 2}, {1}]


def partners_of(vectors: np.ndarray) -> tuple[np.ndarray, list[str]]:
    class Told(SilentObserver):
        def note(self, message: str) -> None:
            notes.append(message)

    notes: list[str] = []
    data = from_vectors(vectors)
    values = {"train.device": "cpu", "train.threads": 1, "n_clusters": 4}
    config = prepare_run(data, Overrides(values)).config
    training = build_training(config, data, Told(), None)
    context, phase = training.trainer.context, training.trainer.plan.phases[0]
    phase.begin(context)
    return context.state[NEIGHBOURS].numpy(), [note for note in notes if "partners" in note]


def test_a_run_takes_those_that_are_nearer_and_says_so():
    kinds = np.arange(400) % 4
    near, told = partners_of(curves())
    assert (near.shape, told) == ((400, 10), [])
    mates, told = partners_of(clouds())
    assert mates.shape == (400, 10)
    assert len(told) == 1
    # what the choice is for: K-Means is right about clouds where neighbours are not
    assert (kinds[mates] == kinds[:, None]).mean() > 0.9


def test_too_little_to_compare_leaves_neighbours():
    random = np.random.default_rng(0)
    assert neighbours_are_nearer(np.ones((9, 1), np.float32), 2, 3, random)
    assert neighbours_are_nearer(random.standard_normal((3, 8)).astype(np.float32), 3, 2, random)

"""One process, two or four: the same losses, weights and answers."""

import json

import pytest
import torch
from peers import HERE, finish, start
from trainings import IN_FLOAT32, N_IMAGES, QUICK, TRAININGS, train

CASES = [
    pytest.param(name, size, marks=() if name in QUICK and size == 2 else pytest.mark.slow)
    for size in (2, 4)
    for name in TRAININGS
]
EXACT = 1e-10


@pytest.fixture(scope="module")
def alone():
    known: dict = {}

    def of(name):
        if name not in known:
            known[name] = train(name)
        return known[name]

    return of


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Many trainings by the same processes: starting them takes longer than a training."""
    known: dict = {}

    def of(name, size):
        names = QUICK if name in QUICK else [name for name in TRAININGS if name not in QUICK]
        if (name, size) not in known:
            folder = tmp_path_factory.mktemp(f"of-{size}")
            finish(start([str(HERE / "trainings.py"), str(folder), *names], size))
            known.update({(name, size): folder for name in names})
        folder = known[name, size]
        return [
            (
                json.loads((folder / f"{name}-{rank}.json").read_text()),
                torch.load(folder / f"{name}-{rank}.pt"),
            )
            for rank in range(size)
        ]

    return of


@pytest.mark.parametrize(("name", "size"), CASES)
def test_losses_weights_and_answers_are_those_of_one_process(alone, together, name, size):
    losses, state = alone(name)
    found_losses, found = together(name, size)[0]
    loose = name in IN_FLOAT32
    n_steps = {"deep": 2, "k-means": 18, "contrastive clustering": 10}.get(name, 20)
    assert len(losses) == len(found_losses) == n_steps
    assert found_losses == pytest.approx(losses, rel=1e-4 if loose else EXACT)
    assert found.keys() == state.keys()
    for key, tensor in state.items():
        own = EXACT if tensor.dtype == torch.float64 else 1e-6
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=1e-3 if loose else own)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_every_process_ends_with_the_same_bits(together, name, size):
    (losses, first), *others = together(name, size)
    assert len(others) == size - 1
    for found_losses, found in others:
        assert found_losses == losses
        assert all(torch.equal(found[key], tensor) for key, tensor in first.items())


def test_answers_come_in_order_with_none_repeated_or_dropped(alone, together):
    """Rows 3 to 11, and a single image, do not divide by two."""
    _, state = alone("alternate")
    _, found = together("alternate", 2)[1]
    assert found["answer"].shape == (N_IMAGES, 3)
    assert found["features"].shape == (9, 256)
    assert found["one image"].shape == (1, 3)
    assert len(state["answer"].unique(dim=0)) == N_IMAGES  # a swap would show

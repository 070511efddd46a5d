"""The loop of short trainings: every image once an epoch, by the seed alone, watched all along."""

import numpy as np
import pytest
import torch
from torch import nn

from dcdc.data.store import open_store
from dcdc.engine.observer import SilentObserver
from dcdc.engine.simple_training import (
    SimplePhase,
    adam_step,
    codes_of,
    epochs_for,
    from_store,
    train_simple,
)
from dcdc.errors import TrainingError

CPU = torch.device("cpu")


@pytest.fixture
def store(tiny_set):
    return open_store(tiny_set.images, CPU)


def train(store, *phases, seed=0, observer=None):
    return train_simple(
        phases,
        store.n_answered,
        from_store(store),
        batch_size=10,
        seed=seed,
        device=CPU,
        observer=observer or SilentObserver(),
    )


def test_phases_follow_each_other_and_show_each_image_at_most_once_an_epoch(store, tiny_set):
    seen, told = [], []

    def noted(name):
        def step(batch):
            wanted = torch.from_numpy(tiny_set.images[batch.indices]).permute(0, 3, 1, 2) / 255
            assert torch.equal(batch.images, wanted)
            seen.append((name, batch.indices.tolist()))
            return {"loss": torch.tensor(1.0)}

        return step

    history = train(
        store,
        SimplePhase(noted("first"), 2, lambda epoch: told.append(("first", epoch))),
        SimplePhase(noted("second"), 1, lambda epoch: told.append(("second", epoch))),
    )
    assert [name for name, _ in seen] == ["first"] * 8 + ["second"] * 4
    assert told == [("first", 1), ("first", 2), ("second", 1)]
    epochs = [[i for _, batch in seen[k : k + 4] for i in batch] for k in (0, 4, 8)]
    assert all(len(set(epoch)) == 40 for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert [(line["epoch"], line["loss"]) for line in history] == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_order_and_draws_follow_from_the_seed(store):
    def run(seed):
        found = []

        def step(batch):
            found.append((batch.indices.tolist(), torch.rand(1, generator=batch.draws).item()))
            return {"loss": torch.tensor(0.0)}

        train(store, SimplePhase(step, 2), seed=seed)
        return found

    assert run(0) == run(0) != run(1)


def test_those_who_watch_hear_of_every_step_and_epoch(store):
    heard = []

    class Listener(SilentObserver):
        def on_start(self, *, epoch, epochs, steps_left):
            heard.append((epoch, epochs, steps_left))

        def on_step(self, terms, n_images):
            heard.append((sorted(terms), n_images))

        def on_epoch(self, record):
            heard.append(sorted(record))

    step = lambda _: {"loss": torch.tensor(2.0)}  # noqa: E731
    train(store, SimplePhase(step, 1), SimplePhase(step, 1), observer=Listener())
    epoch = [(["loss"], 10)] * 4 + [["epoch", "loss", "seconds"]]
    assert heard == [(0, 2, 8), *epoch, *epoch]


def test_a_loss_that_is_not_finite_ends_it(store):
    step = lambda _: {"loss": torch.tensor(float("nan"))}  # noqa: E731
    with pytest.raises(TrainingError, match="not finite in epoch 1"):
        train(store, SimplePhase(step, 5))


def test_a_step_descends_the_loss_of_the_parameters_given(store):
    free, fixed = nn.Parameter(torch.tensor(3.0)), nn.Parameter(torch.tensor(3.0))

    def loss_of(batch):
        return {"loss": free.square() + fixed.square(), "mean": batch.images.mean()}

    history = train(store, SimplePhase(adam_step(loss_of, [free], 0.1), 10))
    assert abs(free.item()) < 1
    assert fixed.item() == 3
    assert history[-1]["loss"] < history[0]["loss"]
    assert 0 < history[0]["mean"] < 1


@pytest.mark.parametrize(
    ("n_steps", "n_images", "batch_size", "epochs"), [(100, 50, 10, 20), (3, 60000, 128, 1)]
)
def test_epochs_make_up_about_the_steps(n_steps, n_images, batch_size, epochs):
    assert epochs_for(n_steps, n_images, batch_size) == epochs


def test_codes_come_in_the_images_order_by_trained_statistics(store, tiny_set):
    norm = nn.BatchNorm2d(1)
    network = nn.Sequential(norm, nn.Flatten())
    codes = codes_of(network, network, store, chunk=7)
    wanted = tiny_set.images.reshape(48, -1) / 255 / np.sqrt(1 + norm.eps)
    np.testing.assert_allclose(codes.numpy(), wanted, rtol=1e-5)
    assert network.training
    assert norm.num_batches_tracked == 0

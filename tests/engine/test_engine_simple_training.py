"""The loop of short trainings: every image once an epoch, by the seed alone, watched all along."""

import numpy as np
import pytest
import torch
from torch import nn

from dcdc.data.store import open_store
from dcdc.engine import simple_training
from dcdc.engine.observer import SilentObserver
from dcdc.engine.optimiser import Adam, Sgd
from dcdc.engine.simple_training import (
    DescendingStep,
    SimplePhase,
    adam_step,
    codes_of,
    epochs_for,
    from_store,
    rate_on,
    train_simple,
)
from dcdc.errors import TrainingError

CPU = torch.device("cpu")


@pytest.fixture
def store(tiny_set):
    return open_store(tiny_set.images, CPU)


def train(store, *phases, seed=0, observer=None, device=CPU):
    return train_simple(
        phases,
        store.n_answered,
        from_store(store),
        batch_size=10,
        seed=seed,
        device=device,
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


class FakeRecorder:
    """As a CUDA graph: what is recorded is not done, and then done again on the same places."""

    def __init__(self, fail=False):
        self.fail, self.n_aside, self.n_replayed = fail, 0, 0

    def aside(self, function):
        self.n_aside += 1
        function()

    def record(self, function, _generator):
        if self.fail:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.function = function
        return self

    def replay(self):
        self.n_replayed += 1
        self.function()


def small_training(device=CPU, kind=Adam, **settings):
    """A network, and a phase that trains it with draws, places and a rate that falls."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 1)).to(device)
    weights = torch.linspace(-1, 1, 48, device=device)
    lr = rate_on(device, 0.1) if device.type == "cuda" else torch.tensor(0.1)

    def loss_of(batch):
        noise = torch.rand(10, 1, generator=batch.draws, device=device)
        made = network(batch.images) + noise
        return {"loss": (made - weights[batch.indices, None]).square().mean()}

    optimiser = kind(network.parameters(), lr, fused=device.type == "cuda")
    step = DescendingStep(loss_of, optimiser, lambda n_done: 0.1 / (1 + n_done))
    return network, SimplePhase(step, 4, **settings)


@pytest.mark.parametrize("fail", [False, True])
def test_a_captured_step_does_as_the_step_itself(store, monkeypatch, fail):
    def run(**settings):
        heard = []
        network, phase = small_training(**settings)
        observer = SilentObserver()
        observer.warn = heard.append
        history = train(store, phase, observer=observer)
        return network.state_dict(), [line["loss"] for line in history], heard

    wanted, losses, _ = run()
    recorder = FakeRecorder(fail)
    monkeypatch.setattr(simple_training, "recorder_on", lambda _: recorder)
    found, same, heard = run(may_be_captured=True)
    assert same == losses
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert recorder.n_aside == 3
    assert recorder.n_replayed == (0 if fail else 13)
    assert len(heard) == fail
    assert all("runs eagerly" in line and "\n" not in line for line in heard)


def test_only_what_may_be_captured_is(store, monkeypatch):
    monkeypatch.setattr(simple_training, "recorder_on", lambda _: pytest.fail("was asked for"))
    train(store, small_training()[1])


def test_a_cpu_captures_nothing():
    assert simple_training.recorder_on(CPU) is None
    assert rate_on(CPU, 0.5) == 0.5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", [Adam, Sgd])
def test_a_graph_does_as_the_step_itself_on_a_gpu(tiny_set, kind):
    device = torch.device("cuda")
    store = open_store(tiny_set.images, device)
    found = []
    for may_be_captured in (False, True):
        heard = []
        network, phase = small_training(device, kind, may_be_captured=may_be_captured)
        observer = SilentObserver()
        observer.warn = heard.append
        history = train(store, phase, phase, observer=observer, device=device)
        assert not heard
        found.append((network[1].weight.detach().cpu(), [line["loss"] for line in history]))
    torch.testing.assert_close(found[0][0], found[1][0])
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-5)

"""The captured step by a graph that replays on the CPU; the real one where there is a GPU."""

from dataclasses import replace

import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.captured_step import CapturedStep, CudaCapture, unchanged
from dcdc.engine.objectives import one_pass, two_passes
from dcdc.engine.observer import SilentObserver
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve

OVER, CLUSTER = ("over_clustering_head",), ("cluster_head",)
BYOL = ("byol",)


class FakeGraph:
    """As torch has it: warmed up and recorded, then run again on what lies in the same places."""

    def __init__(self, function, generator, fail=False):
        self.function, self.generator = function, generator
        function()
        function()
        if fail:
            try:
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            finally:  # as the end of a real capture does
                raise RuntimeError("operation failed due to a previous error during capture")

    def replay(self):
        self.function()


def training(config, image_set):
    return build_training(resolve(config, image_set), image_set, SilentObserver(), None).trainer


def captured(trainer, fail=False):
    warnings = []
    plan = trainer.plan
    trainer.steps = tuple(
        CapturedStep(
            step,
            batch_size * phase.index_rows(),
            warn=warnings.append,
            capture=lambda function, generator: FakeGraph(function, generator, fail),
        )
        for step, phase, batch_size in zip(
            trainer.steps, plan.phases, plan.batch_sizes, strict=True
        )
    )
    return warnings


def weights(trainer):
    return [tensor.clone() for tensor in trainer.network.state_dict().values()]


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(weights(left), weights(right), strict=True))


@pytest.mark.parametrize("fail", [False, True])
def test_a_whole_run_ends_as_the_eager_one(tiny_config, tiny_set, fail):
    config = with_values(tiny_config, {"heads.schedule": "cosine"})
    eager, twin = training(config, tiny_set), training(config, tiny_set)
    warnings = captured(twin, fail)
    eager.train()
    twin.train()
    assert same(eager, twin)
    assert [line["loss"] for line in eager.history] == [line["loss"] for line in twin.history]
    if fail:  # once for each set of heads, in one line
        assert len(warnings) == 2
        told = "the step cannot be captured, so it runs eagerly and slower: operation not permitted"
        assert all(warning.startswith(told) and "\n" not in warning for warning in warnings)


class Streamed:
    """A store as it is, but for what it says of itself."""

    def __init__(self, store):
        self.store, self.is_resident, self.n_answered = store, False, store.n_answered

    def __getattr__(self, name):
        return getattr(self.store, name)


def test_a_streamed_set_is_captured_from_an_image_buffer(tiny_config, tiny_set, monkeypatch):
    eager, twin = training(tiny_config, tiny_set), training(tiny_config, tiny_set)
    monkeypatch.setattr(twin.steps[0], "store", Streamed(twin.steps[0].store))
    captured(twin)
    eager.train()
    twin.train()
    assert same(eager, twin)


@pytest.mark.parametrize(
    ("streamed", "first"),
    [
        (False, "contrast"),
        (True, "contrast"),
        (False, "byol"),
        (False, "discriminate"),
        (True, "discriminate"),
        (False, "relate"),
        (True, "relate"),
        (False, "frozen_heads"),
        (True, "frozen_heads"),
    ],
)
def test_three_phases_with_partners_end_as_the_eager_ones(tiny_config, tiny_set, streamed, first):
    """A batch of 32 with its partners has more rows than the set has images."""
    phases = {
        "phases": (first, "heads", "self_label"),
        f"{first}.epochs": 2,
        f"{first}.batch_size": 16,
        **({"discriminate.warmup_epochs": 0.5} if first == "discriminate" else {}),
        **({"relate.information_weight": 0.1} if first == "relate" else {}),
        "heads.epochs": 2,
        "heads.batch_size": 32,
        "heads.neighbours": 3,
        "self_label.epochs": 2,
        "self_label.batch_size": 24,
        "self_label.threshold": 0.6,
    }
    config = with_values(tiny_config, phases)
    eager, twin = training(config, tiny_set), training(config, tiny_set)
    if streamed:
        for step in twin.steps:
            step.store = Streamed(step.store)
    warnings = captured(twin)
    eager.train()
    twin.train()
    assert same(eager, twin)
    assert [line["loss"] for line in eager.history] == [line["loss"] for line in twin.history]
    assert warnings == []


def test_warming_up_leaves_no_trace(tiny_config, tiny_set):
    trainer = training(tiny_config, tiny_set)
    trainer.generator.manual_seed(3)
    before, drawn = weights(trainer), trainer.generator.get_state()
    (step,) = trainer.steps
    for heads in (OVER, CLUSTER):
        with unchanged(step):
            step(torch.arange(16), heads)
        now = weights(trainer)
        assert all(torch.equal(a, b) for a, b in zip(before, now, strict=True))
        assert torch.equal(trainer.generator.get_state(), drawn)
        states = trainer.optimiser.state.values()
        assert all((value == 0).all() for state in states for value in state.values())
    step(torch.arange(16), OVER)
    kept = {id(p): s["exp_avg"].clone() for p, s in trainer.optimiser.state.items()}
    with unchanged(step):
        step(torch.arange(16), OVER)
    assert all(torch.equal(kept[id(p)], s["exp_avg"]) for p, s in trainer.optimiser.state.items())


def test_a_rate_that_lives_on_the_device_follows_the_schedule(tiny_config, tiny_set):
    config = with_values(tiny_config, {"heads.schedule": "cosine"})
    plain, held = training(config, tiny_set), training(config, tiny_set)
    rate = torch.tensor(0.5)
    held.optimiser.lr = rate
    seen = {"plain": [], "held": []}
    for name, trainer in (("plain", plain), ("held", held)):
        (step,) = trainer.steps

        def watched(indices, heads, name=name, trainer=trainer, step=step):
            seen[name].append(float(trainer.optimiser.lr))
            return step(indices, heads)

        trainer.steps = (watched,)
        trainer.train()
    assert seen["held"] == pytest.approx(seen["plain"], rel=1e-6)
    assert len(set(seen["held"])) > 5
    assert held.optimiser.lr is rate


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
class TestOnAGpu:
    def losses(self, config, image_set, n_steps=200, passes=one_pass, **train):
        chosen = {f"train.{name}": value for name, value in train.items()}
        config = with_values(config, chosen | {"train.device": "cuda"})
        trainer = training(config, image_set)
        step = trainer.steps[0]
        objective = getattr(step, "eager", step).objective
        objective.tools = replace(objective.tools, passes=passes)
        trainer.generator.manual_seed(0)
        trainer.network.train()
        order = torch.Generator().manual_seed(1)
        found = []
        for number in range(n_steps):
            indices = torch.randperm(len(image_set.images), generator=order)[:16].cuda()
            heads = OVER if number % 2 else CLUSTER
            found.append(step(indices, heads)["loss"].clone())
        return torch.stack(found).cpu()

    def test_a_step_that_waits_for_the_device_is_not_captured_and_trains_on(
        self, tiny_config, tiny_set
    ):
        """After it has drawn: the generator had begun to count for a graph."""
        config = with_values(tiny_config, {"train.device": "cuda"})
        eager, twin = (
            training(with_values(config, {"train.capture": False}), tiny_set),
            training(config, tiny_set),
        )
        told = []
        twin.steps[0]._warn = told.append
        objective = twin.steps[0].eager.objective
        loss = objective.loss
        objective.loss = lambda *given: (float(given[1][0].sum()), loss(*given))[1]
        eager.train()
        twin.train()
        assert len(told) == 2  # one for each set of heads
        found, expected = ([line["loss"] for line in t.history] for t in (twin, eager))
        assert found == pytest.approx(expected, rel=1e-3)

    def test_generators_draw_again_after_a_recording_that_failed(self):
        """torch's own too, by which compiled code draws."""
        generator = torch.Generator("cuda").manual_seed(3)
        expected = torch.rand(4, generator=generator, device="cuda")
        generator.manual_seed(3)

        def waits():
            torch.rand(4, device="cuda")
            torch.rand(4, generator=generator, device="cuda").sum().item()

        capture = CudaCapture()
        with pytest.raises(RuntimeError):
            capture.record(waits, generator)
        assert torch.rand(4, device="cuda").numel() == 4
        generator.manual_seed(3)
        assert torch.equal(torch.rand(4, generator=generator, device="cuda"), expected)
        graph = capture.record(lambda: torch.rand(4, device="cuda"), generator)
        graph.replay()

    def test_the_first_replay_draws_by_the_generator_where_the_recording_is_late(self, monkeypatch):
        begin = torch.cuda.CUDAGraph.capture_begin

        def late(*given, **options):
            torch.cuda._sleep(500_000_000)  # a quarter of a second on the recording's stream
            begin(*given, **options)

        monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_begin", late)
        generator = torch.Generator("cuda").manual_seed(0)
        made = []
        torch.rand(4, generator=generator, device="cuda")
        graph = CudaCapture().record(
            lambda: made.append(torch.rand(4, generator=generator, device="cuda")), generator
        )
        generator.manual_seed(7)
        graph.replay()
        generator.manual_seed(7)
        assert torch.equal(made[0], torch.rand(4, generator=generator, device="cuda"))

    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_a_captured_byol_step_and_its_target(self, tiny_config, tiny_set, precision):
        """By a deep backbone; steps are short, or Adam would make whole ones of last digits."""
        values = {"phases": ("byol", "heads"), "byol.epochs": 1, "network.backbone": "resnet18"}
        values |= {"byol.batch_size": 16, "train.device": "cuda", "train.compile": "off"}
        losses, targets = [], []
        for capture in (False, True):
            chosen = {"train.capture": capture, "train.precision": precision}
            trainer = training(with_values(tiny_config, values | chosen), tiny_set)
            trainer.generator.manual_seed(0)
            trainer.optimiser.lr.fill_(1e-5)
            trainer.network.train()
            order = torch.Generator().manual_seed(1)
            steps = [torch.randperm(48, generator=order)[:16].cuda() for _ in range(10)]
            found = [trainer.steps[0](some, BYOL)["loss"].clone() for some in steps]
            losses.append(torch.stack(found).cpu())
            targets.append(trainer.network.parts["byol"].target.state_dict())
            start = training(with_values(tiny_config, values | chosen), tiny_set).network
            assert not torch.equal(
                targets[-1]["network.1.0.weight"],
                start.parts["byol"].projection.state_dict()["0.weight"],
            )
        bound = 1e-3 if precision == "float32" else 5e-2
        torch.testing.assert_close(losses[1], losses[0], rtol=bound, atol=bound)
        for name, tensor in targets[0].items():
            if tensor.is_floating_point() and "running" not in name:
                torch.testing.assert_close(targets[1][name], tensor, rtol=0, atol=1e-4, msg=name)

    def test_captured_is_eager_in_float32(self, tiny_config, tiny_set):
        plain = {"precision": "float32", "capture": False}
        eager = self.losses(tiny_config, tiny_set, 20, two_passes, **plain)
        graph = self.losses(tiny_config, tiny_set, 20, precision="float32", compile="off")
        torch.testing.assert_close(graph, eager, rtol=2e-3, atol=2e-3)

    @pytest.mark.parametrize("compiled", ["off", "on"])
    def test_captured_bfloat16_follows_eager_float32(self, tiny_config, tiny_set, compiled):
        plain = {"precision": "float32", "capture": False}
        eager = self.losses(tiny_config, tiny_set, 200, two_passes, **plain)
        graph = self.losses(tiny_config, tiny_set, precision="bfloat16", compile=compiled)
        smoothed = [curve.unfold(0, 20, 1).mean(1) for curve in (eager, graph)]
        assert (smoothed[0] - smoothed[1]).abs().max() < 0.1

"""The deep layers' update beside the backward pass, against the one after it.

On the CPU all is in line and twins are in float32, since not every CPU has products of bfloat16.
"""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from dcdc.assembly import build_training
from dcdc.config_for_images import resolve
from dcdc.engine import flat_adam
from dcdc.engine.captured_step import CapturedStep, unchanged
from dcdc.engine.flat_adam import FlatAdam
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS
from dcdc.networks import TRUNKS, Aside, ClusteringNetwork, Convolution, weight_gradients_aside
from dcdc.runtime.batch_share import BatchShare
from dcdc.runtime.processes import ALONE

CLUSTER = ("cluster_head",)


@pytest.fixture
def twins_in_float32(monkeypatch):
    monkeypatch.setattr(flat_adam, "_HALF", torch.float32)


def deep_config(config, **train):
    return replace(
        config,
        network=replace(config.network, trunk="resnet18"),
        train=replace(config.train, **train),
    )


def eager_step(config, image_set, passes="one", is_early=True):
    """As it is built for a GPU, but on the CPU."""
    config = resolve(deep_config(config, passes=passes), image_set)
    step = build_training(config, image_set, SilentObserver(), None).trainer.steps[HEADS]
    step.optimiser, step.aside = FlatAdam(step.network, torch.tensor(1e-3)), Aside()
    if not is_early:
        step.optimiser.early = None
    step.network.train()
    return step


def train(step, n_steps=3):
    step.generator.manual_seed(0)
    for number in range(n_steps):
        step(torch.arange(8) + 8 * number, CLUSTER)


def trained(step):
    """All that a step may change."""
    state = step.optimiser.state_dict()["state"]
    moments = {f"{key}/{name}": value for key in state for name, value in state[key].items()}
    return step.network.state_dict() | moments


def assert_equal(left, right):
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


class RecordingAside(Aside):
    """Whether work goes to the second stream now, and whether the first has waited for it."""

    depth, joined = 0, False

    @contextmanager
    def work(self, *_):
        self.depth += 1
        yield
        self.depth -= 1

    def join(self):
        self.joined = True


@contextmanager
def failing_backward(step):
    """At the stem, long after the deep layers."""
    hook = step.network.trunk.stem[1].register_full_backward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        yield
    hook.remove()


@pytest.fixture
def watched(monkeypatch):
    """The backward passes to come of shallow and of deep layers, at each span's update."""
    seen = []

    def start(step):
        layers = [layer for layer in step.network.modules() if isinstance(layer, Convolution)]
        deep = step.optimiser.early.layers
        shallow = [layer for layer in layers if layer not in deep]
        update = flat_adam.update

        def tell(span, *rest):
            if span.twin is not None:
                is_deep = span is step.optimiser._deep
                to_come = [[layer.awaited for layer in some] for some in (shallow, deep)]
                seen.append(("deep" if is_deep else "shallow", *map(set, to_come)))
            update(span, *rest)

        monkeypatch.setattr(flat_adam, "update", tell)
        return seen

    return start


@pytest.mark.usefixtures("twins_in_float32")
class TestInLine:
    @pytest.mark.parametrize("passes", [pytest.param("one", marks=pytest.mark.slow), "two"])
    def test_it_ends_as_the_late_update_to_the_bit(self, tiny_config, tiny_set, passes):
        early = eager_step(tiny_config, tiny_set, passes)
        late = eager_step(tiny_config, tiny_set, passes, is_early=False)
        for step in (early, late):
            train(step)
        assert_equal(trained(early), trained(late))

    @pytest.mark.parametrize("passes", ["one", "two"])
    def test_deep_layers_are_updated_after_their_last_gradient_and_before_any_shallow_one(
        self, tiny_config, tiny_set, watched, passes
    ):
        """Of two passes, the last to go backward counts."""
        step = eager_step(tiny_config, tiny_set, passes)
        seen = watched(step)
        train(step, 2)
        assert seen == [("deep", {1}, {0}), ("shallow", {0}, {0})] * 2

    def test_it_runs_where_the_weight_gradients_do(self, tiny_config, tiny_set, monkeypatch):
        """And the layers that are updated at the end do not."""
        step = eager_step(tiny_config, tiny_set)
        step.aside = RecordingAside()
        seen, update = [], flat_adam.update

        def tell(span, *rest):
            if span.twin is not None:
                seen.append((span is step.optimiser._deep, step.aside.depth, step.aside.joined))
            update(span, *rest)

        monkeypatch.setattr(flat_adam, "update", tell)
        train(step, 1)
        assert seen == [(True, 1, False), (False, 0, True)]

    def test_it_is_adam(self, tiny_config, tiny_set):
        ours = eager_step(tiny_config, tiny_set)
        theirs = eager_step(tiny_config, tiny_set)
        for layer in theirs.network.modules():
            if isinstance(layer, Convolution):
                layer.twin = layer.twin_gradient = None
        theirs.optimiser = torch.optim.Adam(theirs.network.parameters(), lr=1e-3)
        start = [weight.detach().clone() for weight in ours.network.parameters()]
        for step in (ours, theirs):
            train(step)
        for old, left, right in zip(
            start, ours.network.parameters(), theirs.network.parameters(), strict=True
        ):  # by norm: where a gradient is next to nothing, rounding decides
            assert (left - right).norm() <= 1e-2 * (right - old).norm()

    def test_several_processes_sum_first(self, tiny_config, tiny_set, watched):
        step = eager_step(tiny_config, tiny_set)
        step.share = BatchShare(ALONE, 8)
        seen = watched(step)
        train(step, 1)
        assert [kind for kind, *_ in seen] == ["shallow", "deep"]
        assert len(step.optimiser.flat_gradients) == 2

    def test_after_a_failure_the_next_step_is_whole(self, tiny_config, tiny_set, watched):
        step = eager_step(tiny_config, tiny_set)
        seen = watched(step)
        with failing_backward(step):
            train(step, 1)
        assert [kind for kind, *_ in seen] == ["deep"]
        seen.clear()
        train(step, 1)
        assert seen == [("deep", {1}, {0}), ("shallow", {0}, {0})]

    def test_a_failure_inside_leaves_no_trace_of_itself(self, tiny_config, tiny_set):
        """As when a step cannot be captured."""
        step, other = eager_step(tiny_config, tiny_set), eager_step(tiny_config, tiny_set)
        with failing_backward(step), unchanged(step):
            train(step, 1)
        for each in (step, other):
            train(each, 2)
        assert_equal(trained(step), trained(other))

    def test_a_state_saved_by_adam_is_taken_up(self, tiny_config, tiny_set):
        """As every checkpoint has it: by parameter."""
        step = eager_step(tiny_config, tiny_set)
        train(step, 2)
        saved = step.optimiser.state_dict()["state"]
        weights = list(step.network.parameters())
        assert saved.keys() == set(range(len(weights)))
        for index, weight in enumerate(weights):
            assert saved[index].keys() == {"step", "exp_avg", "exp_avg_sq"}
            assert saved[index]["exp_avg"].shape == weight.shape
        other = eager_step(tiny_config, tiny_set)
        adam = torch.optim.Adam(other.network.parameters())
        adam.load_state_dict({**adam.state_dict(), "state": saved})
        other.optimiser.load_state_dict(adam.state_dict())
        other.network.load_state_dict(step.network.state_dict())
        for each in (step, other):
            train(each, 2)
        assert_equal(trained(step), trained(other))

    def test_a_layer_used_again_after_its_update_is_a_fault(self):
        built = network("resnet18")
        optimiser = FlatAdam(built, torch.tensor(1e-3))
        images = torch.rand(2, 3, 8, 8)
        with pytest.raises(AssertionError, match="used again"):  # noqa: SIM117
            with weight_gradients_aside(built, Aside(), optimiser.early):
                for _ in range(2):
                    built.features(images).square().sum().backward()

    def test_a_pass_without_gradients_is_not_waited_for(self):
        built = network("resnet18")
        optimiser = FlatAdam(built, torch.tensor(1e-3))
        images = torch.rand(2, 3, 8, 8)
        with weight_gradients_aside(built, Aside(), optimiser.early):
            with torch.no_grad():
                built.features(images)
            built.features(images).square().sum().backward()
        assert optimiser.early.followed

    def test_a_pass_whose_gradient_never_comes_leaves_all_to_the_end(self):
        built = network("resnet18")
        optimiser = FlatAdam(built, torch.tensor(1e-3))
        images = torch.rand(2, 3, 8, 8)
        with weight_gradients_aside(built, Aside(), optimiser.early):
            unused = built.features(images)
            built.features(images).square().sum().backward()
        assert unused.requires_grad
        assert not optimiser.early.followed


def network(trunk):
    torch.manual_seed(0)
    return ClusteringNetwork(trunk=trunk, in_channels=3, n_clusters=3, mean=[0.5], std=[0.5])


@pytest.mark.parametrize("trunk", TRUNKS)
def test_deep_layers_hold_most_weights_and_little_of_the_depth(trunk):
    built = network(trunk)
    layers = [layer for layer in built.modules() if isinstance(layer, Convolution)]
    early = FlatAdam(built, torch.tensor(1e-3)).early
    if not layers:
        assert early is None
        return
    deep, n_weights = early.layers, [layer.weight.numel() for layer in layers]
    assert deep == layers[-len(deep) :]
    assert 0.9 <= sum(n_weights[-len(deep) :]) / sum(n_weights) < 0.95
    assert {layer.out_channels for layer in deep} == {256, 512}


def test_without_twins_nothing_is_early():
    assert FlatAdam(network("resnet18"), torch.tensor(1e-3), half=False).early is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("capture", [False, True])
def test_on_two_streams_it_ends_as_the_late_update_to_the_bit(
    tiny_config, tiny_set, monkeypatch, capture
):
    config = deep_config(tiny_config, device="cuda", precision="bfloat16", capture=capture)
    ends = []
    for is_early in (True, False):
        trainer = build_training(
            resolve(config, tiny_set), tiny_set, SilentObserver(), None
        ).trainer
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
        monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
        if not is_early:
            trainer.optimiser.early = None
        step = trainer.steps[HEADS]
        assert isinstance(step, CapturedStep) is capture
        trainer.network.train()
        step.generator.manual_seed(0)
        for number in range(30):
            step((torch.arange(16, device="cuda") + number) % 48, CLUSTER)
        if is_early:
            eager = step.eager if capture else step
            assert eager.optimiser.early.followed
        ends.append(trainer.network.state_dict())
    assert_equal(*ends)

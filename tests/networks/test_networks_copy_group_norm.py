"""Shapes: N images, C channels, H x W pixels, D features."""

import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dcdc.networks import copy_group_norm
from dcdc.networks.convolution import Convolution
from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d, PooledNorm, copy_groups


def seeded(norm: nn.Module) -> nn.Module:
    """Parameters and buffers away from 0 and 1."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in norm.state_dict().items():
        if name != "num_batches_tracked":
            tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return norm


def images(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2 + 1
    return drawn.to(dtype).requires_grad_()


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.detach().contiguous(memory_format=torch.channels_last)


X = channels_last(images(6, 3, 5, 5))


def learnt(norm: nn.Module, y: torch.Tensor, *inputs: torch.Tensor | None) -> list[torch.Tensor]:
    """The output, every gradient and every buffer after a backward pass of a fixed gradient."""
    dy = images(*y.shape, seed=9).detach().to(y)
    wanted = [*(tensor for tensor in inputs if tensor is not None), *norm.parameters()]
    return [y.detach(), *torch.autograd.grad(y, wanted, dy), *norm.buffers()]


@pytest.mark.parametrize("groups", [(3,), (2, 5), (1, 4, 2)])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize(
    ("grouped", "plain", "shape"),
    [
        (CopyGroupNorm, nn.BatchNorm2d, (3, 5, 17)),
        (CopyGroupNorm, nn.BatchNorm2d, (70, 3, 3)),
        (CopyGroupNorm1d, nn.BatchNorm1d, (6,)),
    ],
)
def test_one_pass_means_a_pass_for_each_group(grouped, plain, shape, groups, relu, add):
    if len(shape) == 1:
        groups = tuple(2 * size for size in groups)  # a group of one row has no variance
    norm, other = seeded(grouped(shape[0])), seeded(plain(shape[0]))
    x = images(sum(groups), *shape)
    residual = images(sum(groups), *shape, seed=2) if add else None

    norm.groups = groups
    found = learnt(norm, norm(x, residual, relu), x, residual)
    y = torch.cat([other(part) for part in x.split(groups)])
    y = y + residual if add else y
    expected = learnt(other, F.relu(y) if relu else y, x, residual)

    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found, expected)
    assert norm.num_batches_tracked == len(groups)


def test_the_statistics_are_those_of_a_slow_loop():
    norm = seeded(CopyGroupNorm(3)).double()
    norm.groups = (2, 3)
    average, spread = norm.running_mean.clone(), norm.running_var.clone()
    x = images(5, 3, 5, 3, dtype=torch.float64)
    y = norm(x, relu=False)
    for group in (slice(0, 2), slice(2, 5)):
        for channel in range(3):
            values = x[group, channel].flatten()
            mean = sum(values) / len(values)
            squares = sum((value - mean) ** 2 for value in values)
            scale = norm.weight[channel] / (squares / len(values) + norm.eps) ** 0.5
            wanted = (x[group, channel] - mean) * scale + norm.bias[channel]
            torch.testing.assert_close(y[group, channel], wanted)
            average[channel] += 0.1 * (mean.detach() - average[channel])
            spread[channel] += 0.1 * (squares.detach() / (len(values) - 1) - spread[channel])
    torch.testing.assert_close(norm.running_mean, average)
    torch.testing.assert_close(norm.running_var, spread)


@pytest.mark.parametrize("training", [True, False])
def test_without_groups_a_block_keeps_every_bit(training):
    """`F.relu(norm(conv) + shortcut)` and `F.relu(norm(conv))`, as the residual block has them."""
    norm, other = (seeded(kind(64)).train(training) for kind in (CopyGroupNorm, nn.BatchNorm2d))
    x, shortcut = images(4, 64, 5, 5), images(4, 64, 5, 5, seed=2)
    pairs = [
        (learnt(norm, norm(x, shortcut), x, shortcut), F.relu(other(x) + shortcut), (x, shortcut)),
        (learnt(norm, norm(x), x), F.relu(other(x)), (x,)),
        (learnt(norm, norm(x, relu=False), x), other(x), (x,)),
    ]
    for found, y, inputs in pairs:
        assert all(map(torch.equal, found[:-3], learnt(other, y, *inputs)[:-3]))
    assert all(map(torch.equal, norm.buffers(), other.buffers()))


def test_evaluation_does_not_look_at_the_groups():
    norm, other = seeded(CopyGroupNorm(3)).eval(), seeded(nn.BatchNorm2d(3)).eval()
    norm.groups = (99,)
    x = images(4, 3, 5, 5)
    assert torch.equal(norm(x), F.relu(other(x)))
    assert all(map(torch.equal, norm.buffers(), other.buffers()))


@pytest.mark.parametrize(("kind", "shape"), [(CopyGroupNorm, (2, 3, 2)), (CopyGroupNorm1d, (2,))])
def test_gradients_are_those_of_finite_differences(kind, shape):
    norm = seeded(kind(2)).double()
    norm.groups = (2, 3)
    inputs = images(5, *shape, dtype=torch.float64), images(5, *shape, seed=2, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x, residual: norm(x, residual), inputs)


def test_half_precision_stays_outside_the_statistics():
    norm = seeded(CopyGroupNorm(3))
    norm.groups = (2, 4)
    y = norm(images(6, 3, 5, 5, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16
    assert norm.running_var.dtype == torch.float32


@pytest.mark.parametrize(
    "kinds", [(CopyGroupNorm, nn.BatchNorm2d), (CopyGroupNorm1d, nn.BatchNorm1d)]
)
def test_a_state_fits_torchs_own_norm_and_back(kinds):
    grouped, plain = (seeded(kind(3)) for kind in kinds)
    assert list(grouped.state_dict()) == list(plain.state_dict())
    grouped.load_state_dict(plain.state_dict())
    plain.load_state_dict(grouped.state_dict())


@pytest.mark.parametrize("groups", [(2, 3), (5,), (6, -2), (4, 0)])
@pytest.mark.parametrize(("kind", "shape"), [(CopyGroupNorm, (3, 2, 2)), (CopyGroupNorm1d, (3,))])
def test_groups_that_are_not_the_batch_are_refused(kind, shape, groups):
    norm = kind(3)
    norm.groups = groups
    with pytest.raises(ValueError, match="do not make up a batch of 4"):
        norm(images(4, *shape))


def test_copy_groups_reach_every_norm_below_and_are_put_back():
    network = nn.Sequential(
        CopyGroupNorm(3), nn.BatchNorm2d(3), nn.Sequential(nn.Flatten(), CopyGroupNorm1d(3))
    )
    norms = [network[0], network[2][1]]
    with copy_groups(network, (1, 2)):
        assert [norm.groups for norm in norms] == [(1, 2)] * 2
        with pytest.raises(RuntimeError, match="inside"), copy_groups(network, (3,)):
            assert [norm.groups for norm in norms] == [(3,)] * 2
            raise RuntimeError("inside")
        assert [norm.groups for norm in norms] == [(1, 2)] * 2
    assert [norm.groups for norm in norms] == [()] * 2
    assert not hasattr(network[1], "groups")


def stand_in(
    x, weight, bias, running_mean, running_var, batches, groups, residual, relu, momentum, eps, fork
):
    """What the kernels do, in plain torch."""
    buffers, batches[...] = (running_mean, running_var), batches + len(groups)
    parts = [
        F.batch_norm(part, *buffers, weight, bias, True, momentum, eps) for part in x.split(groups)
    ]
    y = torch.cat(parts) if residual is None else torch.cat(parts) + residual
    y = y.relu() if relu else y
    return (y, y) if fork else y


@pytest.fixture
def calls(monkeypatch):
    """The calls of the fused path, which a stand-in makes possible without a device."""
    fused_norm = pytest.importorskip("dcdc.networks.fused_norm", reason="the kernels need triton")
    fused_stem = pytest.importorskip("dcdc.networks.fused_stem")
    made = []

    def counted(*arguments, processes):
        assert not processes.joined
        made.append(arguments)
        return stand_in(*arguments)

    def counted_stem(x, convolution, *arguments, processes):
        *state, momentum, eps = arguments
        y = counted(convolution(x), *state, None, True, momentum, eps, False, processes=processes)
        return (F.max_pool2d(y, 2, 2, 1),) * 2

    monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", "cpu")
    fits = (fused_norm.fits, fused_stem.fits)
    kernels = copy_group_norm._Kernels(counted, fits[0], counted_stem, fits[1])
    monkeypatch.setattr(copy_group_norm, "_kernels", lambda: kernels)
    return made


@pytest.mark.parametrize("groups", [(), (2, 3)])
@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_the_fused_path_gets_all_that_the_eager_one_has(calls, monkeypatch, groups, add, relu):
    found = []
    x, residual = (channels_last(images(5, 3, 5, 5, seed=seed)) for seed in (1, 2))
    for path in ("cpu", "cuda"):
        monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", path)
        norm = seeded(CopyGroupNorm(3, eps=1e-2, momentum=0.3))
        norm.groups = groups
        inputs = x.requires_grad_(), residual.requires_grad_() if add else None
        found.append(learnt(norm, norm(*inputs, relu), *inputs))
    assert len(calls) == 1
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("path", ["cpu", "cuda"])
def test_a_forked_output_comes_twice_and_sums_what_comes_back(calls, monkeypatch, path):
    monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", path)
    x, norm = X.clone().requires_grad_(), seeded(CopyGroupNorm(3))
    (y, again), plain = norm(x, X, fork=True), norm(x, X)
    assert len(calls) == 2 * (path == "cpu")
    assert torch.equal(y, plain)
    assert torch.equal(again, plain)
    dy, dy2 = images(*X.shape, seed=1), images(*X.shape, seed=2)
    found = torch.autograd.grad((y, again), x, (dy, dy2))
    torch.testing.assert_close(found, torch.autograd.grad(plain, x, dy + dy2))


@pytest.mark.parametrize(
    ("settings", "x", "residual"),
    [
        ({}, X.contiguous(), None),
        ({}, X, X.contiguous()),
        ({}, X, X.bfloat16()),
        ({}, X, X[:1]),
        ({"dtype": torch.float64}, X.double(), None),
        ({"dtype": torch.bfloat16}, X.bfloat16(), None),
        ({"affine": False}, X, None),
        ({"momentum": None}, X, None),
        ({"track_running_stats": False}, X, None),
        ({"groups": (1, 1, 1, 1, 2)}, X, None),
    ],
)
def test_what_the_kernels_cannot_take_goes_the_eager_way(calls, monkeypatch, settings, x, residual):
    settings = dict(settings)
    groups = settings.pop("groups", (2, 4))
    found = []
    for path in ("cpu", "cuda"):
        monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", path)
        norm = seeded(CopyGroupNorm(3, **settings))
        norm.groups = groups
        found.append([norm(x, residual), *norm.buffers()])
    assert not calls
    assert all(map(torch.equal, *found))


def test_evaluation_is_never_fused(calls):
    seeded(CopyGroupNorm(3)).eval()(X)
    seeded(PooledNorm(16)).eval()(X, stem_of())
    assert not calls


def stem_of(depth=3, channels=16):
    torch.manual_seed(3)
    return Convolution(depth, channels, 3).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("groups", [(), (2, 4)])
@pytest.mark.parametrize("side", [(5, 5), (4, 7)])
def test_a_pooled_norm_is_a_convolution_a_norm_and_torchs_pool(calls, monkeypatch, groups, side):
    """To the bit where it is eager; and the fused path gets all that the eager one has."""
    x, found = channels_last(images(6, 3, *side)), []
    for path, kind in (("cuda", CopyGroupNorm), ("cuda", PooledNorm), ("cpu", PooledNorm)):
        monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", path)
        norm, stem = seeded(kind(16, eps=1e-2, momentum=0.3)), stem_of()
        norm.groups = groups
        if kind is PooledNorm:
            y, again = norm(x, stem)
            assert torch.equal(y, again)
        else:
            y = F.max_pool2d(norm(stem(x)), 2, 2, 1)
        found.append(learnt(norm, y, stem.weight))
    assert len(calls) == 1
    assert all(map(torch.equal, found[0], found[1]))
    torch.testing.assert_close(found[0], found[2])


@pytest.mark.parametrize(
    ("stem", "x"),
    [
        (stem_of(), X.contiguous()),
        (stem_of(channels=8), X),
        (Convolution(3, 16, 5).to(memory_format=torch.channels_last), X),
        (Convolution(3, 16, 3, stride=2).to(memory_format=torch.channels_last), X),
        (stem_of().to(memory_format=torch.contiguous_format), X),
        (stem_of(), X.clone().requires_grad_()),
    ],
)
def test_what_the_kernels_cannot_take_is_pooled_too(calls, stem, x):
    n_channels = stem.out_channels
    y, again = seeded(PooledNorm(n_channels))(x, stem)
    norm = seeded(CopyGroupNorm(n_channels))
    made = len(calls)
    torch.testing.assert_close(y, F.max_pool2d(norm(stem(x)), 2, 2, 1))
    assert y is again
    assert all(len(call[0].shape) == 4 and call[0].shape[1] == n_channels for call in calls[:made])


@pytest.mark.parametrize(
    ("channels", "x"), [(4, X), (3, X.double()), (3, channels_last(X[:, :, :1, :1]))]
)
def test_what_torch_refuses_is_refused_on_the_fused_path_too(calls, channels, x):
    norm = CopyGroupNorm(channels)
    norm.groups = (1, 5)  # of one pixel an image: the first group has no variance
    with pytest.raises((RuntimeError, ValueError)):
        norm(x)
    assert not calls


def test_without_triton_there_is_only_the_eager_way(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "dcdc.networks.fused_norm", raising=False)
    monkeypatch.setattr(copy_group_norm, "_kernels", copy_group_norm._kernels.__wrapped__)
    monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", "cpu")
    assert copy_group_norm._kernels() is None
    assert torch.equal(seeded(CopyGroupNorm(3))(X), F.relu(seeded(nn.BatchNorm2d(3))(X)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_fuses_and_agrees_with_the_eager_way(monkeypatch):
    found = []
    for path in ("cuda", "none"):
        monkeypatch.setattr(copy_group_norm, "_FUSED_DEVICE", path)
        norm = seeded(CopyGroupNorm(64)).cuda()
        norm.groups = (10, 30)
        x, residual = (
            channels_last(images(40, 64, 17, 17, seed=seed)).cuda().requires_grad_()
            for seed in (1, 2)
        )
        found.append(learnt(norm, norm(x, residual, relu=False), x, residual))
    assert copy_group_norm._kernels() is not None
    for ours, plain in zip(*found, strict=True):
        # A weight's gradient may be 1 where its 11,560 terms sum to 17,000 without their signs.
        atol = 1e-4 * plain.abs().max().item()
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=atol)

"""The kernels in Triton's interpreter on small shapes, and on the device where there is one.

Shapes: N images, C channels, H x W pixels.
"""

from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
import torch
from norm_examples import (
    BF16,
    EPS,
    F32,
    MOMENTUM,
    Example,
    assert_alike,
    example,
    in_float64,
    learnt,
    slow_norm,
)
from torch import Tensor, nn

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="the kernels need triton")


def fused(
    example: Example,
    groups: tuple[int, ...],
    relu: bool = True,
    processors: int = 0,
    read: tuple[int, ...] = (),
) -> dict[str, Tensor]:
    from dcdc.networks.fused_norm import fused_norm

    fork = bool(read) or example.dy2 is not None

    def apply(x, residual, *state):
        y = fused_norm(x, *state, groups, residual, relu, MOMENTUM, EPS, fork)
        return y if fork else (y,)

    return learnt(apply, example, processors, read)


def fused_as_large(*arguments) -> dict[str, Tensor]:
    """By the tiles of a tensor of many bytes."""
    from dcdc.networks import fused_norm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_norm, "_LARGE", 0)
        return fused(*arguments)


@pytest.fixture
def run(call):
    return partial(call, fused)


def slow(example: Example, groups, relu=True) -> dict[str, Tensor]:
    """Group by group in float64 on the CPU, gradients by autograd."""

    def apply(x, residual, weight, bias, *buffers):
        y = slow_norm(x, weight, bias, *buffers, groups)
        y = y if residual is None else y + residual
        return (y.relu() if relu else y,)

    return learnt(apply, in_float64(example))


@pytest.mark.parametrize(
    ("groups", "channels", "side", "dtype", "add", "relu", "processors"),
    [
        ((20, 2), 3, (3, 3), F32, True, True, 8),  # a group in many chunks, another in one
        ((1, 3), 2, (17, 17), F32, False, True, 1),
        ((1, 2), 70, (17, 3), F32, True, True, 1),  # the last block of channels is not full
        ((3, 4), 64, (17, 17), BF16, False, True, 1),  # several tiles a chunk
        ((5, 2), 64, (9, 9), BF16, True, True, 1),
        ((4,), 3, (5, 3), F32, True, False, 4),
        ((2, 1, 1, 3), 2, (3, 5), BF16, False, False, 4),
        ((3,), 128, (3, 3), F32, False, True, 1),
    ],
)
def test_the_kernels_match_a_float64_loop_over_groups(
    device, run, groups, channels, side, dtype, add, relu, processors
):
    images = example(device, sum(groups), channels, side, dtype, add)
    assert_alike(run(images, groups, relu, processors), slow(images, groups, relu))


@pytest.mark.parametrize(
    ("groups", "channels", "side", "dtype", "add"),
    [
        ((3, 4), 64, (17, 17), BF16, False),  # several tiles a chunk
        ((5, 2), 64, (9, 9), BF16, True),
        ((1, 2), 70, (17, 3), F32, True),  # the last block of channels is not full
    ],
)
def test_tiles_of_large_tensors_match_it_too(device, call, groups, channels, side, dtype, add):
    images = example(device, sum(groups), channels, side, dtype, add)
    found = call(fused_as_large, images, groups, True, 1)
    assert_alike(found, slow(images, groups))


@pytest.mark.parametrize(
    ("groups", "channels", "side", "add", "relu", "processors"),
    [
        ((5, 2), 64, (9, 9), True, True, 1),
        pytest.param((1, 2), 70, (17, 3), True, True, 8, marks=pytest.mark.slow),
        ((2, 3), 3, (5, 3), True, False, 1),
        ((4,), 3, (17, 5), False, True, 1),
        ((3, 1), 2, (3, 5), False, False, 4),
    ],
)
def test_a_fork_adds_the_gradients_of_its_readers(
    device, run, groups, channels, side, add, relu, processors
):
    images = example(device, sum(groups), channels, side, F32, add, two=True)
    assert_alike(run(images, groups, relu, processors), slow(images, groups, relu))


@pytest.mark.parametrize(
    ("add", "relu"),
    [
        (True, True),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
    ],
)
def test_a_fork_has_the_bits_of_one_output_whose_gradients_were_added(device, run, add, relu):
    """In bfloat16 too: of 8 digits at most, so that the interpreter has nothing to cut off."""
    for dtype in (F32, BF16):
        images = example(device, 4, 6, (5, 5), dtype, add, two=True)
        if dtype == BF16:
            for dy in (images.dy, images.dy2):
                dy.mul_(8).round_()
        added = replace(images, dy=images.dy + images.dy2, dy2=None)
        found, expected = run(images, (1, 3), relu), run(added, (1, 3), relu)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("read", [(0,), (1,)])
@pytest.mark.parametrize("add", [True, False])
def test_a_fork_with_one_reader_has_that_ones_gradient(device, run, read, add):
    images = example(device, 4, 3, (5, 3), add=add)
    assert_alike(run(images, (1, 3), True, 0, read), slow(images, (1, 3)))


def test_the_kernels_match_torchs_norm_run_once_per_group(device, run):
    groups = (2, 5)
    images = example(device, 7, 3, (5, 5))
    norm = nn.BatchNorm2d(3, momentum=MOMENTUM, eps=EPS).to(device)
    norm.load_state_dict({"weight": images.weight, "bias": images.bias}, strict=False)
    x = images.x.clone().requires_grad_()
    y = torch.cat([norm(part) for part in x.split(groups)]).relu()
    y.backward(images.dy)
    expected = {"y": y.detach(), "dx": x.grad}
    expected |= {"d_weight": norm.weight.grad, "d_bias": norm.bias.grad}
    expected |= dict(norm.named_buffers())
    assert_alike(run(images, groups), expected, float32=1e-4)  # both err, and not alike


def test_a_mean_far_from_zero_costs_no_more_than_its_own_rounding(device, run):
    """Sums of plain squares would leave no digit of the variance."""
    images = example(device, 5, 3, (17, 17))
    images.x[:, 1] += 1e4
    found, expected = run(images, (2, 3), False, 2), slow(images, (2, 3), relu=False)
    torch.testing.assert_close(
        found["running_var"].cpu().double(), expected["running_var"], rtol=1e-4, atol=0
    )
    error = (found["y"].cpu().double() - expected["y"]).abs().amax((0, 2, 3))
    assert error[1] < 1e-3  # 1e4 itself is known to 1e-3
    assert error[0] < 1e-5


def test_constant_channels_become_their_bias(device, run):
    """To the bit, although neither value times its count is a float32."""
    images = example(device, 5, 3, (17, 17))
    images.x[:, 1:] = torch.tensor([0.1, 1234.567])[:, None, None]
    found = run(images, (5,), False, 4)
    assert torch.equal(found["y"][:, 1:], images.bias[1:, None, None].expand(5, 2, 17, 17))
    torch.testing.assert_close(found["running_var"][1:].cpu(), torch.tensor([0.9, 0.9]))
    assert all(tensor.isfinite().all() for tensor in found.values())


@pytest.mark.parametrize("add", [False, True])
def test_a_nan_is_not_hidden_by_the_relu(device, run, add):
    images = example(device, 4, 2, (3, 3), add=add)
    images.x[0, 0, 1, 1] = float("nan")
    y = run(images, (2, 2))["y"]
    assert y[:2, 0].isnan().all()
    assert y[2:].isfinite().all()
    assert y[:, 1].isfinite().all()


def test_a_gradient_in_another_layout_is_taken_too(device, run):
    images = example(device, 4, 3, (3, 5), add=True)
    strided = replace(images, dy=images.dy.contiguous())
    assert not strided.dy.is_contiguous(memory_format=torch.channels_last)
    assert_alike(run(strided, (1, 3)), slow(images, (1, 3)))


def test_a_fault_of_the_compiler_is_a_warning(monkeypatch):
    from triton import JITFunction

    from dcdc.networks import fused_norm

    monkeypatch.setattr(fused_norm, "_partial_statistics", object.__new__(JITFunction))
    with pytest.warns(RuntimeWarning, match="the fused batch norm cannot be built"):
        assert not fused_norm.is_available.__wrapped__()


@pytest.mark.parametrize("n_images", [200, 800])
@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize(
    ("channels", "side"),
    [(64, 32), (64, 17), (128, 9), (256, 5), (512, 3), (64, 96), (32, 8), (3, 3)],
)
@pytest.mark.parametrize("shares", [(1,), (0.5, 0.5), (0.25, 0.75)])
def test_plans_keep_a_large_device_busy_and_chunks_inside_their_group(
    n_images, itemsize, channels, side, shares
):
    from dcdc.networks.fused_norm import plan

    rows = tuple(int(n_images * share) * side * side for share in shares)
    for block_bytes in (16384, 8192, 4096):
        tiles = plan(rows, channels, itemsize, block_bytes, 132)
        chunks = [-(-of_group // (tiles.block_rows * tiles.tiles)) for of_group in rows]
        programs = tiles.chunks * tiles.columns
        assert tiles.chunks == sum(chunks)
        assert max(chunks) <= tiles.fold <= 256
        assert tiles.columns * tiles.block_channels >= channels
        assert programs <= 4 * 132
        if sum(rows) * channels >= 1800 * 512:
            assert programs >= 132


COMPILE = """
import itertools, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dcdc.networks import fused_norm_kernels, fused_stem_backward, fused_stem_forward

norms = (
    fused_norm_kernels._partial_statistics,
    fused_norm_kernels._apply,
    fused_norm_kernels._partial_gradients,
    fused_norm_kernels._input_gradient,
)
stems = (
    fused_stem_forward._partial_statistics_of_stem,
    fused_stem_forward._convolve_apply_and_pool,
    fused_stem_backward._partial_gradients_of_stem,
    fused_stem_backward._fold_filter_gradients,
)
cases = [*itertools.product(norms, (32,), ((64, 2, True, 1), (70, 1, False, 1)))]
cases += itertools.product(stems, (64,), ((64, 2, True, 2), (20, 1, False, 3)))
for kernel, most, (channels, tiles, add, depth) in cases:
    reach = triton.next_power_of_2(16 * depth)
    constants = dict(height=9, width=8, pixels=64, depth=depth, reach=reach)
    constants |= dict(pixel_reach=reach, pixel_fold=8)
    constants |= dict(channels=channels, block_rows=32, block_channels=most, tiles=tiles, fold=8)
    constants |= dict(groups=2, add=add, relu=True, overlap=True)
    constants |= dict(two=add, mask_by_x=not add, mask_by_y=add, await_dy=add)
    types = {"batches": "*i64", "momentum": "fp32", "eps": "fp32"}
    types |= dict.fromkeys(("images", "filters", "x", "residual", "y"), "*bf16")
    types |= dict.fromkeys(("dy", "dy2", "open_dy", "dx", "d_filters"), "*bf16")
    types |= dict.fromkeys(("end0", "end1", "end2", "end3"), "i32")
    types |= dict.fromkeys(constants, "constexpr")
    signature = {argument: types.get(argument, "*fp32") for argument in kernel.arg_names}
    used = {key: value for key, value in constants.items() if key in kernel.arg_names}
    pointers = [i for i, kind in enumerate(signature.values()) if "*" in kind]
    aligned = {(i,): [["tt.divisibility", 16]] for i in pointers}
    source = ASTSource(kernel, signature, used, aligned)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    loads = kernel in stems or channels % 32 or "ld.global.v4.b32" in ptx
    print(kernel.__name__, bool(loads), "griddepcontrol" in ptx)
"""


@pytest.mark.slow
def test_the_kernels_compile_for_hopper_with_16_byte_loads(compiled):
    assert [line.split()[1:] for line in compiled(COMPILE)] == [["True", "True"]] * 16


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [BF16, F32])
@pytest.mark.parametrize(("channels", "side"), [(64, 32), (64, 17), (128, 9), (256, 5), (512, 3)])
@pytest.mark.parametrize("add", [False, True])
def test_the_networks_own_shapes_match_on_the_device(channels, side, dtype, add):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    images = example("cuda", 200, channels, (side, side), dtype, add)
    found, expected = fused(images, (50, 150)), slow(images, (50, 150))
    again = fused(images, (50, 150))
    assert all(torch.equal(found[name], again[name]) for name in found)
    for name, wanted in expected.items():  # by norm: a ReLU on the brink may fall either way
        off = (found[name].cpu().double() - wanted).norm() / wanted.double().norm()
        assert off < 1e-2, name
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(found[name].cpu().double(), expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
def test_a_captured_graph_replays_to_the_same_bits():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    from dcdc.networks.fused_norm import fused_norm

    images = example("cuda", 40, 64, (17, 17), BF16, add=True)
    expected = fused(images, (10, 30))
    x, weight, bias, residual = (
        t.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        for t in (images.x, images.weight, images.bias, images.residual)
    )
    buffers = torch.zeros(64).cuda(), torch.ones(64).cuda(), torch.tensor(0).cuda()

    def step():
        y = fused_norm(x, weight, bias, *buffers, (10, 30), residual, True, MOMENTUM, EPS)
        return y, *torch.autograd.grad(y, (x, weight, bias, residual), images.dy)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step()
    for buffer, start in zip(buffers, (0, 1, 0), strict=True):
        buffer.fill_(start)
    graph.replay()
    names = ("y", "dx", "d_weight", "d_bias", "d_residual")
    for name, value in zip(names, found, strict=True):
        assert torch.equal(value, expected[name]), name
    names = ("running_mean", "running_var", "num_batches_tracked")
    for name, value in zip(names, buffers, strict=True):
        assert torch.equal(value, expected[name]), name

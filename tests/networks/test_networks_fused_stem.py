"""The stem's kernels in Triton's interpreter on small shapes, and on the device where there is one.

Shapes: N images of `depth` channels and H x W pixels, C channels, H // 2 + 1 x W // 2 + 1 windows.
The interpreter cannot multiply in bfloat16, so half precision is float16 there.
"""

from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import product

import pytest
import torch
from norm_examples import BF16, EPS, F32, MOMENTUM, slow_norm
from torch import Tensor
from torch.nn import functional as F

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="the kernels need triton")
F16 = torch.float16


@dataclass(frozen=True)
class Stem:
    images: Tensor
    filters: Tensor
    weight: Tensor
    bias: Tensor
    slopes: tuple[Tensor, ...]
    """Of one reader or of two."""


def stem(
    device, n_images, depth, side, channels=16, dtype=F32, two=True, coarse=False, middle=1.0
) -> Stem:
    """Gradients are of few digits, so that their sums are the same however rounded.

    `coarse`: of few values, so that many windows have several largest pixels. `middle`: about which
    the images' values lie.
    """
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(shape, generator=generator)

    def laid(tensor):
        return tensor.to(device, dtype, memory_format=torch.channels_last)

    windows = (n_images, channels, side[0] // 2 + 1, side[1] // 2 + 1)
    images, filters = drawn(n_images, depth, *side) * 2 + middle, drawn(channels, depth, 3, 3)
    if coarse:
        images, filters = images.round(), filters.sign()
    slopes = tuple((drawn(*windows) * 8).round() / 8 for _ in range(1 + two))
    return Stem(
        laid(images),
        laid(filters),
        (torch.rand(channels, generator=generator) + 0.5).to(device),
        drawn(channels).to(device),
        tuple(laid(slope) for slope in slopes),
    )


def learnt(apply, stem: Stem, read: tuple[int, ...] = ()) -> dict[str, Tensor]:
    """What comes out, forward and backward; `read`: which of a fork's outputs have a reader."""
    given = (stem.filters, stem.weight, stem.bias)
    filters, weight, bias = (t.detach().clone().requires_grad_() for t in given)
    names = ("running_mean", "running_var", "num_batches_tracked")
    buffers = torch.zeros_like(stem.bias), torch.ones_like(stem.bias), torch.tensor(0)
    buffers = [buffer.to(stem.bias.device) for buffer in buffers]
    outs = apply(stem.images, filters, weight, bias, *buffers)
    readers = [outs[which] for which in read or range(len(stem.slopes))]
    torch.autograd.backward(readers, stem.slopes)
    assert all(out.data_ptr() == outs[0].data_ptr() for out in outs)
    gradients = {"d_filters": filters.grad, "d_weight": weight.grad, "d_bias": bias.grad}
    return {"y": outs[-1].detach()} | gradients | dict(zip(names, buffers, strict=True))


def fused(
    stem: Stem, groups: tuple[int, ...], processors: int = 0, read: tuple[int, ...] = ()
) -> dict[str, Tensor]:
    """Planned for as many processors as are asked for: one makes few programs of many tiles."""
    from dcdc.networks.convolution import Convolution
    from dcdc.networks.fused_stem import fused_stem

    def apply(images, filters, *state):
        layer = Convolution(filters.shape[1], len(filters), 3)
        layer.weight = torch.nn.Parameter(filters)
        outs = fused_stem(images, layer, *state, groups, MOMENTUM, EPS)
        layer.weight.register_hook(lambda slope: setattr(filters, "grad", slope))
        return outs

    with pytest.MonkeyPatch.context() as patch:
        if processors:
            patch.setattr("dcdc.networks.fused_norm._processors", lambda _: processors)
        return learnt(apply, stem, read)


@pytest.fixture
def run(call):
    return partial(call, fused)


def taken(y: Tensor) -> Tensor:
    """Per window, which pixel of its image is the first largest; pixel by pixel."""
    n_images, channels, height, width = y.shape
    high, wide = height // 2 + 1, width // 2 + 1
    values, route = y.tolist(), torch.zeros((n_images, channels, high, wide), dtype=torch.int64)
    for image, channel, down, across in product(*map(range, route.shape)):
        largest = float("-inf")
        for row, column in product((2 * down - 1, 2 * down), (2 * across - 1, 2 * across)):
            inside = 0 <= row < height and 0 <= column < width
            if inside and values[image][channel][row][column] > largest:
                largest = values[image][channel][row][column]
                route[image, channel, down, across] = row * width + column
    return route


def slow_convolution(images: Tensor, filters: Tensor) -> Tensor:
    """Pixel by pixel."""
    padded = F.pad(images, (1, 1, 1, 1))
    height, width = images.shape[2:]
    pixels = [
        torch.einsum("ndij,cdij->nc", padded[:, :, row : row + 3, column : column + 3], filters)
        for row, column in product(range(height), range(width))
    ]
    return torch.stack(pixels, dim=2).unflatten(2, (height, width))


def slow(stem: Stem, groups) -> dict[str, Tensor]:
    """Group by group in float64 on the CPU, window by window, gradients by autograd."""

    def apply(images, filters, weight, *state):
        x = slow_convolution(images, filters)
        y = slow_norm(x, weight, *state, groups)
        # The largest of y, but x has no roundings of its own where equal patches tie.
        route = taken(x.detach() * torch.where(weight < 0, -1, 1)[:, None, None])
        return (y.relu().flatten(2).gather(2, route.flatten(2)).view(route.shape),)

    total = stem.slopes[0] if len(stem.slopes) == 1 else stem.slopes[0] + stem.slopes[1]
    tensors = (stem.images, stem.filters, stem.weight, stem.bias, total)
    images, filters, weight, bias, total = (t.cpu().double() for t in tensors)
    return learnt(apply, Stem(images, filters, weight, bias, (total,)))


def assert_alike(
    found: dict[str, Tensor], expected: dict[str, Tensor], float32: float = 1e-4
) -> None:
    """By the norm of each; half precision keeps fewer digits of y and of the sum of gradients."""
    assert found.keys() == expected.keys()
    halves = {F32: float32, F16: 2e-3, BF16: 2e-2}
    for name, value in found.items():
        wanted = expected[name].cpu().double()
        off = (value.cpu().double() - wanted).norm() / wanted.norm().clamp(min=1e-6)
        assert off <= halves.get(found["y"].dtype, float32), (name, float(off))


def slow_case(*values):
    """Triton's interpreter takes seconds for each."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("groups", "depth", "side", "channels", "dtype", "two", "coarse", "processors"),
    [
        slow_case((3, 1), 2, (8, 8), 16, F32, True, False, 8),
        slow_case((1, 2), 3, (5, 4), 20, F32, True, False, 1),  # the block of channels is not full
        slow_case((5, 2), 1, (17, 17), 16, F32, False, True, 1),  # several tiles a chunk
        ((2, 3), 2, (4, 7), 64, F16, True, True, 1),
        slow_case((2, 1, 1, 3), 3, (9, 2), 16, F16, True, False, 4),
        ((4,), 4, (1, 6), 16, F16, False, False, 1),
        slow_case((9,), 2, (12, 11), 16, F32, True, True, 64),  # many chunks
    ],
)
def test_the_kernels_match_a_float64_loop_over_groups_pixels_and_windows(
    device, run, groups, depth, side, channels, dtype, two, coarse, processors
):
    images = stem(device, sum(groups), depth, side, channels, dtype, two, coarse)
    assert_alike(run(images, groups, processors), slow(images, groups))


def eager(stem: Stem, groups) -> dict[str, Tensor]:
    """What the kernels stand for, by torch, on the example's device and in float64.

    No backend's flags make that less. Gradients of two readers are added in their own precision.
    """

    def apply(images, filters, weight, bias, mean, var, batches):
        batches += len(groups)
        x = F.conv2d(images, filters, padding=1)
        state = (mean, var, weight, bias, True, MOMENTUM, EPS)
        y = torch.cat([F.batch_norm(part, *state) for part in x.split(groups)])
        return (F.max_pool2d(F.relu(y), 2, 2, 1),) * 2

    total = stem.slopes[0] + stem.slopes[1]
    tensors = (stem.images, stem.filters, stem.weight, stem.bias, total)
    *inputs, total = (tensor.double() for tensor in tensors)
    return learnt(apply, Stem(*inputs, (total,)))


@pytest.mark.parametrize(("depth", "side"), [slow_case(2, (6, 6)), (3, (5, 3))])
def test_the_kernels_match_torchs_convolution_norm_relu_and_pool(device, run, depth, side):
    images = stem(device, 7, depth, side, coarse=True)
    assert_alike(run(images, (2, 5)), eager(images, (2, 5)))


@pytest.mark.slow  # Triton's interpreter
def test_of_equal_pixels_the_first_is_taken(device, run):
    """Images of one value: all windows that see no border have four equal pixels."""
    images = stem(device, 4, 2, (8, 9))
    images.images.fill_(1.0)
    x = slow_convolution(images.images.cpu().double(), images.filters.cpu().double())
    first = taken(torch.ones_like(x))
    assert torch.equal(taken(x)[..., 1:4, 1:4], first[..., 1:4, 1:4])
    assert_alike(run(images, (4,)), slow(images, (4,)))


@pytest.mark.slow  # Triton's interpreter
@pytest.mark.parametrize("dtype", [F32, F16])
def test_scales_may_be_negative_or_zero(device, run, dtype):
    """Then the least convolved pixel is the largest, or all of them are the bias."""
    images = stem(device, 5, 2, (6, 7), dtype=dtype)
    images.weight[::3] *= -1
    images.weight[1::6] = 0
    found, expected = run(images, (2, 3)), slow(images, (2, 3))
    bias = images.bias[1::6].clamp(min=0).to(dtype)
    assert torch.equal(found["y"][:, 1::6], bias[:, None, None].expand(5, -1, 4, 4))
    assert_alike(found, expected)


@pytest.mark.slow  # Triton's interpreter
@pytest.mark.parametrize(("side", "processors"), [((8, 8), 1), ((9, 7), 4)])
def test_images_far_from_zero_keep_their_variance(device, run, side, processors):
    """Filters whose rows and columns sum to zero: borders too add nothing but noise."""
    images = stem(device, 6, 2, side, middle=100.0)
    edge = torch.tensor([1.0, -2.0, 1.0]).to(device)
    images.filters[:8] = edge[:, None] * edge
    found, expected = run(images, (2, 4), processors), slow(images, (2, 4))
    off = found["running_var"].cpu().double() / expected["running_var"] - 1
    assert off.abs().max() < 1e-3
    assert_alike(found, expected, float32=1e-3)


@pytest.mark.slow  # Triton's interpreter
def test_a_closed_relu_passes_nothing_on(device, run):
    images = stem(device, 4, 2, (6, 5))
    images.bias[1] = -100
    found = run(images, (1, 3))
    assert not found["y"][:, 1].any()
    for name in ("d_filters", "d_weight", "d_bias"):
        assert not found[name][1].any()
    assert_alike(found, slow(images, (1, 3)))


@pytest.mark.slow  # Triton's interpreter
@pytest.mark.parametrize("read", [(0,), (1,)])
def test_a_fork_with_one_reader_has_that_ones_gradient(device, run, read):
    images = stem(device, 4, 2, (5, 4), two=False)
    assert_alike(run(images, (1, 3), 0, read), slow(images, (1, 3)))


@pytest.mark.slow  # Triton's interpreter
def test_a_nan_reaches_its_group_alone(device, run):
    images = stem(device, 4, 2, (3, 4))
    images.images[0, 0, 1, 1] = float("nan")
    found = run(images, (2, 2))
    assert found["y"][:2].isnan().all()
    assert found["y"][2:].isfinite().all()
    assert found["d_filters"].isnan().all()


@pytest.mark.slow  # Triton's interpreter
def test_a_channel_that_is_constant_becomes_its_bias(device, run):
    images = stem(device, 5, 2, (7, 7))
    images.filters[1] = 0
    images.bias.abs_()
    found = run(images, (5,), 4)
    assert torch.equal(found["y"][:, 1], images.bias[1].expand(5, 4, 4))
    assert all(tensor.isfinite().all() for tensor in found.values())


@pytest.mark.slow  # Triton's interpreter
def test_gradients_in_another_layout_are_taken_too(device, run):
    images = stem(device, 4, 2, (4, 6))
    strided = replace(images, slopes=tuple(slope.contiguous() for slope in images.slopes))
    assert not strided.slopes[0].is_contiguous(memory_format=torch.channels_last)
    assert_alike(run(strided, (1, 3)), slow(images, (1, 3)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [BF16, F32])
@pytest.mark.parametrize(
    ("n_images", "depth", "side"), [(200, 2, 32), (40, 3, 33), (20, 2, 96), (8, 1, 28)]
)
def test_the_networks_own_shapes_match_on_the_device(n_images, depth, side, dtype):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    images = stem("cuda", n_images, depth, (side, side), 64, dtype)
    groups = (n_images // 4, n_images - n_images // 4)
    found, again = fused(images, groups), fused(images, groups)
    assert all(torch.equal(found[name], again[name]) for name in found)
    assert_alike(found, eager(images, groups), float32=2e-3)

"""The kernel in Triton's interpreter on odd sizes, and on the device where there is one.

Shapes: B images, C channels, H x W pixels.
"""

from functools import partial
from importlib.util import find_spec

import pytest
import torch

from dcdc.networks import ClusteringNetwork
from dcdc.networks import front as front_module
from dcdc.networks.front import Normalise, Sobel, front

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="the kernel needs triton")

MEAN, STD = (0.1, 0.4, 0.7, 0.2), (0.2, 0.3, 0.4, 0.9)
BF16, F32 = torch.bfloat16, torch.float32
LAYOUTS = {
    "channels last": torch.channels_last,
    "channels first": torch.contiguous_format,
}


def by_kernel(images, mean, std, edges, dtype, block=512):
    from dcdc.networks import front_kernel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(front_kernel, "_BLOCK", block)
        return front_kernel.front(images, mean, std, edges, dtype)


@pytest.fixture
def run(call):
    return partial(call, by_kernel)


def make(device, n_images=2, channels=3, height=5, width=7, layout=torch.channels_last):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((n_images, channels, height, width), generator=generator)
    return images.contiguous(memory_format=layout).to(device)


def statistics(images):
    channels = images.shape[1]
    return tuple(torch.tensor(some[:channels], device=images.device) for some in (MEAN, STD))


def exact(images, edges=True):
    """By the modules, in float64."""
    channels = images.shape[1]
    x = Normalise(MEAN[:channels], STD[:channels])(images.cpu().double())
    return Sobel().double()(x) if edges else x


def assert_near(found, expected, device="cpu"):
    """The interpreter cuts off what bfloat16 cannot hold, a device rounds it."""
    tolerance = {"rtol": 1e-5, "atol": 2e-5}
    if found.dtype == BF16:
        tolerance = {"rtol": 2**-7 if device == "cpu" else 2**-8, "atol": 2e-5}
    torch.testing.assert_close(found.cpu().double(), expected, **tolerance)


@pytest.mark.parametrize("edges", [True, False])
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("channels", "height", "width", "block"),
    [(1, 5, 7, 512), (3, 9, 4, 512), (3, 11, 13, 16), (4, 3, 3, 4)],
)
def test_it_is_the_modules_in_float64(
    device, run, channels, height, width, block, layout, dtype, edges
):
    images = make(device, 2, channels, height, width, LAYOUTS[layout])
    found = run(images, *statistics(images), edges, dtype, block)
    assert found.dtype == dtype
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert_near(found, exact(images, edges), device)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 6), (6, 1), (2, 2)])
def test_images_that_are_all_border(device, run, height, width):
    images = make(device, 3, 3, height, width)
    assert_near(run(images, *statistics(images), True, F32), exact(images), device)


def test_the_border_is_zero_after_the_channels_are_normalised(device, run):
    """A plain image of the mean colour has no edges, any other has them at its border alone."""
    mean, std = statistics(make(device))
    plain = mean.view(1, 3, 1, 1).expand(1, 3, 6, 6)
    assert run(plain, mean, std, True, F32).abs().max() < 1e-6
    edges = run(plain + std.view(1, 3, 1, 1), mean, std, True, F32)  # of grey 1
    assert edges[..., 1:-1, 1:-1].abs().max() < 1e-5
    assert edges[0, :, 0, 0].tolist() == pytest.approx([-3, -3], abs=1e-5)
    assert edges[0, :, 0, 2].tolist() == pytest.approx([0, -4], abs=1e-5)
    assert edges[0, :, 2, 5].tolist() == pytest.approx([4, 0], abs=1e-5)


def test_memory_in_any_layout_is_read(device, run):
    wide = make(device, 2, 3, 12, 20)
    for images in (wide[:, :, ::2, 1::2], wide[:, :, 3:9, 5:15], wide[:1].expand(3, -1, -1, -1)):
        assert_near(run(images, *statistics(images), True, F32), exact(images), device)


@pytest.fixture
def asked(monkeypatch):
    """The CPU is taken for a device with a kernel; what it was asked for."""
    from dcdc.networks.front_kernel import fits

    calls = []

    def tell(images, _mean, _std, edges, dtype):
        calls.append((edges, dtype))
        return images.new_zeros((len(images), 2 if edges else images.shape[1], *images.shape[2:]))

    monkeypatch.setattr(front_module, "_KERNEL_DEVICE", "cpu")
    monkeypatch.setattr(front_module, "_kernel", lambda: front_module._Kernel(fits, tell))
    return calls


def network(sobel, channels=3, **changes):
    given = {"mean": [0.5] * channels, "std": [0.2] * channels} | changes
    return ClusteringNetwork(
        trunk="small", in_channels=channels, n_clusters=2, sobel=sobel, **given
    )


@pytest.mark.parametrize("sobel", [True, False])
def test_the_network_takes_the_kernel_and_autocast_says_in_what(asked, sobel):
    built = network(sobel)
    built.features(make("cpu", height=8, width=8))
    with torch.autocast("cpu", dtype=BF16):
        front(make("cpu"), built.normalise, built.sobel)
    assert asked == [(sobel, F32), (sobel, BF16)]


@pytest.mark.parametrize(
    ("built", "images"),
    [
        (network(True), make("cpu").requires_grad_()),
        (network(True, 5), make("cpu", channels=5)),
        (network(True).double(), make("cpu").double()),
        (network(True, mean=[0.5], std=[0.2]), make("cpu")),  # one for all channels
        (network(True), make("cpu", n_images=0)),
    ],
)
def test_what_the_kernel_cannot_take_goes_through_the_modules(asked, built, images):
    found = front(images, built.normalise, built.sobel)
    assert torch.equal(found, built.sobel(built.normalise(images)))
    assert asked == []


def test_a_cpu_never_asks_for_it(monkeypatch):
    monkeypatch.setattr(front_module, "_kernel", lambda: pytest.fail("asked for"))
    built, images = network(True), make("cpu")
    found = front(images, built.normalise, built.sobel)
    assert torch.equal(found, built.sobel(built.normalise(images)))


def test_a_fault_of_the_compiler_is_a_warning(monkeypatch):
    from triton import JITFunction

    from dcdc.networks import front_kernel

    monkeypatch.setattr(front_kernel, "_front", object.__new__(JITFunction))
    with pytest.warns(RuntimeWarning, match="the kernel of the front cannot be built"):
        assert not front_kernel.is_available.__wrapped__()


COMPILE = """
import itertools, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dcdc.networks.front_kernel import _front as kernel

for channels, edges, out in itertools.product((1, 3), (True, False), ("*bf16", "*fp32")):
    constants = dict(channels=channels, height=32, width=32, edges=edges, block=512)
    types = {"out": out} | {name: "i32" for name in kernel.arg_names if name.endswith("_stride")}
    types |= dict.fromkeys(constants, "constexpr")
    signature = {argument: types.get(argument, "*fp32") for argument in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    print(channels, edges, out)
"""


@pytest.mark.slow
def test_the_kernel_compiles_for_hopper(compiled):
    assert len(compiled(COMPILE)) == 8


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("sobel", [True, False])
@pytest.mark.parametrize(("n_images", "side"), [(800, 32), (200, 96)])
def test_the_networks_own_shapes_match_on_the_device(monkeypatch, n_images, side, sobel):
    built = network(sobel, mean=MEAN[:3], std=STD[:3]).cuda()
    images = make("cuda", n_images, 3, side, side)
    assert front_module._kernel() is not None
    monkeypatch.setattr(Sobel, "forward", lambda *_: pytest.fail("not by the kernel"))
    monkeypatch.setattr(Normalise, "forward", lambda *_: pytest.fail("not by the kernel"))
    with torch.autocast("cuda", dtype=BF16):
        half = front(images, built.normalise, built.sobel)
    whole = front(images, built.normalise, built.sobel)
    monkeypatch.undo()
    for found, dtype in ((half, BF16), (whole, F32)):
        assert found.dtype == dtype
        assert found.is_contiguous(memory_format=torch.channels_last)
        assert_near(found, exact(images, sobel), "cuda")

"""The kernel against the ops one by one: in Triton's interpreter, and on a GPU where there is one.

B images, r repeats, C channels, H x W pixels
"""

from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import permutations
from multiprocessing import get_context

import pytest
import torch

from dcdc.augment import OriginalCopy, PerturbedCopy, kernels
from dcdc.augment.color import Jitter
from dcdc.augment.geometry import fitting_boxes
from dcdc.augment.pipeline import PerturbedDraw

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="the kernel needs triton")

PAPER = {
    "crop_scale": (0.2, 1.0),
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "hue": 0.4,
    "grey": 0.2,
    "flip": 0.5,
}
HARD = PAPER | {"crop_scale": (0.02, 1.0), "brightness": 1, "contrast": 1, "saturation": 1}
HARD |= {"hue": 0.5, "grey": 0.3}
NO_DRAW = PerturbedDraw(None, None, None, None, None, None)


def make(n=1, channels=3, height=6, width=10, seed=0, device="cpu"):
    """As a store hands them out: channels last."""
    generator = torch.Generator().manual_seed(seed)
    size = (n, channels, height, width)
    images = torch.randint(0, 256, size, dtype=torch.uint8, generator=generator)
    return images.contiguous(memory_format=torch.channels_last).to(device)


def by_kernel(function, *arguments, block=None):
    from dcdc.augment import copy_kernel

    with pytest.MonkeyPatch.context() as patch:
        if block is not None:
            patch.setattr(copy_kernel, "_BLOCK", block)
        return getattr(copy_kernel, function)(*arguments)


@pytest.fixture(scope="module")
def interpreter():
    """A process of its own: Triton settles on its import whether it interprets kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield lambda *given, **named: pool.submit(by_kernel, *given, **named).result()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return request.param


@pytest.fixture
def run(device, request):
    """`by_kernel`, where the device can run it."""
    return by_kernel if device == "cuda" else request.getfixturevalue("interpreter")


@pytest.fixture
def assert_same(run):
    """The kernel's perturbed copies are the ops', whose definition runs on the CPU."""

    def check(images, draw, n_repeats=1, block=None, atol=1e-5):
        ours = run("perturbed_copies", images, n_repeats, *draw[1:5], block=block)
        assert ours.dtype == torch.float32
        theirs = PerturbedCopy(n_repeats=n_repeats).apply(images.cpu(), on_cpu(draw))
        torch.testing.assert_close(ours.cpu(), theirs, atol=atol, rtol=0)

    return check


def on_cpu(draw):
    if isinstance(draw, torch.Tensor):
        return draw.cpu()
    return type(draw)(*map(on_cpu, draw)) if isinstance(draw, tuple) else draw


def drawn(images, n_repeats=1, seed=0, **ops):
    generator = torch.Generator(images.device).manual_seed(seed)
    return PerturbedCopy(n_repeats=n_repeats, **ops).draw(images, generator)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("block", [1024, 32])
def test_everything_at_once(assert_same, device, channels, block):
    images = make(2, channels, device=device)
    assert_same(images, drawn(images, 4, **HARD), 4, block)


@pytest.mark.parametrize("op", [*PAPER, None])
@pytest.mark.parametrize("channels", [1, 3])
def test_each_op_alone(assert_same, device, op, channels):
    images = make(2, channels, device=device)
    assert_same(images, drawn(images, 2, **{op: HARD[op]} if op else {}), 2)


def times(orders, device):
    """Of each copy's ops, so that op orders[i][k] is the copy's k-th."""
    return torch.tensor(orders, device=device).argsort(1).div(4)


def test_all_orders(assert_same, device):
    images = make(1, device=device).expand(24, -1, -1, -1)
    factors = (torch.full((24,), value, device=device) for value in (1.6, 0.4, 1.8, 0.3))
    jitter = Jitter(*factors, times(list(permutations(range(4))), device))
    ours = PerturbedCopy().apply(images, NO_DRAW._replace(jitter=jitter))
    assert len(ours.flatten(1).unique(dim=0)) == 24
    assert_same(images, NO_DRAW._replace(jitter=jitter))


@pytest.mark.parametrize("first", range(4))
def test_contrast_of_many_blocks_has_the_mean_of_its_own_turn(assert_same, device, first):
    images = make(device=device).expand(2, -1, -1, -1)
    factors = (torch.full((2,), value, device=device) for value in (1.9, 0.3, 1.8, -0.4))
    rest = [op for op in range(4) if op not in (1, first)]
    jitter = Jitter(*factors, times([[first, *rest, 1], [*rest, 1, first]], device))
    if first == 1:
        jitter = jitter._replace(when=times([[1, 0, 2, 3], [0, 1, 3, 2]], device))
    assert_same(images, NO_DRAW._replace(jitter=jitter), block=16)


def test_hue_goes_round_the_circle_and_leaves_grey_alone(assert_same, device):
    """Every colour of the cube's corners and edges, by every twelfth of a turn."""
    values = torch.tensor([0, 128, 255], dtype=torch.uint8)
    cube = torch.cartesian_prod(values, values, values).T.reshape(1, 3, 3, 9).to(device)
    shifts = torch.arange(-6, 7, device=device) / 12
    jitter = Jitter(None, None, None, shifts, torch.zeros((13, 4), device=device))
    images = cube.expand(13, -1, -1, -1)
    assert_same(images, NO_DRAW._replace(jitter=jitter))
    grey = make(13, 1, device=device).expand(-1, 3, -1, -1)
    assert_same(grey, NO_DRAW._replace(jitter=jitter))


def test_boxes_at_each_border_and_of_one_pixel(assert_same, device):
    height, width = 6, 10
    boxes = [(0, 0, height, width), (0, 3, 2, 4), (4, 3, 2, 4), (2, 0, 3, 4), (2, 6, 3, 4)]
    boxes += [(0, 0, 1, 1), (5, 9, 1, 1), (2, 4, 1, 1), (3, 0, 1, width), (0, 7, height, 1)]
    boxes = torch.tensor(boxes, device=device)
    images = make(len(boxes), height=height, width=width, device=device)
    assert_same(images, NO_DRAW._replace(boxes=boxes))
    flip = torch.arange(len(boxes), device=device) % 2 == 0
    assert_same(images, NO_DRAW._replace(boxes=boxes, flip=flip))


def test_memory_in_any_layout_is_read(assert_same, device):
    wide = make(2, 3, 12, 20, device=device)
    for images in (wide.contiguous()[:, :, ::2, 1::2], wide[:, :, 3:9, 5:15]):
        assert_same(images, drawn(images, 1, **HARD))


@pytest.mark.parametrize("block", [1024, 16])
@pytest.mark.parametrize(
    ("channels", "height", "width", "size", "resize_to"),
    [(3, 8, 8, 8, 10), (1, 8, 8, 8, 9), (3, 6, 10, 8, 15), (3, 7, 7, 7, 8)],
)
def test_originals(device, run, channels, height, width, size, resize_to, block):
    gap = resize_to - size
    offsets = torch.tensor([[0, 0], [gap, gap], [0, gap], [gap // 2, 0]], device=device)
    images = make(4, channels, height, width, device=device)
    ours = run("original_copies", images, offsets, resize_to, size, block=block)
    theirs = OriginalCopy(size, resize_to).apply(images.cpu(), offsets.cpu())
    torch.testing.assert_close(ours.cpu(), theirs, atol=1e-5, rtol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("side", "resize_to"), [(32, 40), (64, 80), (96, 112)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_papers_sizes_through_the_copies_themselves(side, resize_to, channels):
    atol = 1e-5 if side < 96 else 3e-5  # coordinates near 96 have float32 steps of 8e-6
    images = make(200, channels, side, side, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    for copy in (OriginalCopy(side, resize_to), PerturbedCopy(n_repeats=3, **PAPER)):
        assert copy.has_kernel(images.device)
        draw = copy.draw(images, generator)
        ours = copy.apply(images, draw)
        assert ours.is_contiguous(memory_format=torch.channels_last)
        theirs = copy.apply(images.cpu(), on_cpu(draw))
        torch.testing.assert_close(ours.cpu(), theirs, atol=atol, rtol=0)


class AskedError(Exception):
    pass


@pytest.fixture
def kernel_on_cpu(monkeypatch):
    """Copies take the CPU for a device with a kernel, which tells when it is asked."""
    from dcdc.augment.copy_kernel import fits

    def tell(*_):
        raise AskedError

    monkeypatch.setattr(kernels, "_DEVICE", "cpu")
    monkeypatch.setattr(
        kernels, "_kernels", lambda: kernels.Kernels(fits, tell, tell, fitting_boxes)
    )


@pytest.mark.usefixtures("kernel_on_cpu")
class TestTheKernelIsTaken:
    CPU = torch.device("cpu")

    def is_asked(self, copy, images):
        try:
            copy(images, torch.Generator().manual_seed(0))
        except AskedError:
            return True
        return False

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("copy", [OriginalCopy(6, 10), PerturbedCopy(**PAPER)])
    def test_for_bytes(self, copy, channels):
        assert copy.has_kernel(self.CPU)
        assert self.is_asked(copy, make(2, channels))

    @pytest.mark.parametrize("op", [{"noise": 0.1}, {"rotation": 5}, {"scale": (0.9, 1)}])
    def test_but_not_to_move_or_for_noise(self, op):
        copy = PerturbedCopy(**PAPER, **op)
        assert not copy.has_kernel(self.CPU)
        assert not self.is_asked(copy, make(2))

    @pytest.mark.parametrize("copy", [OriginalCopy(6, 10), PerturbedCopy(brightness=0.5)])
    @pytest.mark.parametrize("images", [make(2).float() / 255, make(0), make(2, 2)])
    def test_but_not_for_other_pixels(self, copy, images):
        assert not self.is_asked(copy, images)

    def test_but_not_to_make_an_image_smaller(self):
        assert self.is_asked(OriginalCopy(4, 10), make(height=6, width=10))
        assert not self.is_asked(OriginalCopy(4, 9), make(height=6, width=10))

    def test_but_not_on_another_device(self):
        for copy in (OriginalCopy(6, 10), PerturbedCopy(**PAPER)):
            assert not copy.has_kernel(torch.device("meta"))


def test_a_cpu_never_asks_for_it(monkeypatch):
    monkeypatch.setattr(kernels, "_kernels", lambda: pytest.fail("asked for"))
    for copy in (OriginalCopy(6, 10), PerturbedCopy(**PAPER)):
        copy(make(2), torch.Generator())
        assert not copy.has_kernel(torch.device("cpu"))


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dcdc.augment.copy_kernel import _make_copies as kernel

draws = ("offsets", "boxes", "brightness", "contrast", "saturation", "hue", "when", "grey", "flip")
for side, channels, on in (
    (32, 3, draws[:1]), (32, 3, draws[1:]), (96, 3, draws[1:]), (8, 1, ("contrast", "when")),
):
    constants = dict(channels=channels, block=min(side * side, 1024))
    for name in ("height", "width"):
        constants |= {name: side, f"out_{name}": side, f"resized_{name}": side}
    constants |= {draw: None for draw in draws if draw not in on}
    types = dict(images="*u8", offsets="*i64", boxes="*i64", grey="*i1", flip="*i1")
    types |= {name: "i32" for name in kernel.arg_names if name.endswith("_stride")}
    types |= {"n_images": "i32"} | dict.fromkeys(constants, "constexpr")
    signature = {argument: types.get(argument, "*fp32") for argument in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    print(side, channels, len(on))

from dcdc.augment.copy_kernel import _fitting_boxes as kernel
sizes = ("n", "height", "width", "centred_height", "centred_width")
constants = dict(attempts=10, block=64)
types = {"boxes": "*i64"} | dict.fromkeys(sizes, "i32") | dict.fromkeys(constants, "constexpr")
signature = {argument: types.get(argument, "*fp32") for argument in kernel.arg_names}
source = ASTSource(kernel, signature, constants)
triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
print("boxes")
"""


@pytest.mark.slow
def test_the_kernels_compile_for_hopper(compiled):
    assert len(compiled(COMPILE)) == 5


def test_a_fault_of_the_compiler_is_a_warning(monkeypatch):
    from triton import JITFunction

    from dcdc.augment import copy_kernel

    monkeypatch.setattr(copy_kernel, "_make_copies", object.__new__(JITFunction))
    with pytest.warns(RuntimeWarning, match="the kernel of the copies cannot be built"):
        assert not copy_kernel.is_available.__wrapped__()

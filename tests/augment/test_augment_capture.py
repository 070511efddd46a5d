import pytest
import torch

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.engine.captured_step import CudaCapture

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

PAPER = {
    "n_repeats": 3,
    "crop_scale": (0.2, 1.0),
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "hue": 0.4,
    "grey": 0.2,
    "flip": 0.5,
}
COPIES = {
    "original": OriginalCopy(32, 40),
    "perturbed": PerturbedCopy(**PAPER),
    "perturbed by single ops": PerturbedCopy(
        **PAPER,
        rotation=20,
        shift=0.1,
        scale=(0.8, 1.2),
        shear=10,
        noise=0.05,
    ),
}


@pytest.fixture(params=COPIES)
def copy(request):
    return COPIES[request.param]


@pytest.fixture(params=[1, 3])
def images(request):
    return torch.randint(0, 256, (16, request.param, 32, 32), dtype=torch.uint8, device="cuda")


def test_never_waits_for_the_device(copy, images):
    generator = torch.Generator("cuda").manual_seed(0)
    copy(images, generator)
    torch.cuda.set_sync_debug_mode("error")
    try:
        copy(images, generator)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_captured_equals_eager_and_draws_afresh(copy, images):
    generator = torch.Generator("cuda").manual_seed(0)
    made = []
    graph = CudaCapture()(lambda: made.append(copy(images, generator)), generator)
    out = made[-1]

    generator.manual_seed(7)
    replays = []
    for _ in range(2):
        graph.replay()
        replays.append(out.clone())
    generator.manual_seed(7)
    eager = [copy(images, generator) for _ in range(2)]
    for replay, expected in zip(replays, eager, strict=True):
        torch.testing.assert_close(replay, expected, atol=1e-6, rtol=0)
    assert not torch.equal(replays[0], replays[1])

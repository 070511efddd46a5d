"""A config becomes weights that its seed decides, and a training that steps."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.data import from_arrays
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.prepare import assembly
from dcdc.prepare.assembly import build_network, build_training
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import resolve


def test_weights_follow_from_the_seed_alone(tiny_config, tiny_set):
    config = resolve(tiny_config, tiny_set)
    torch.manual_seed(1)
    first = build_network(config)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again = build_network(config)
    assert torch.equal(torch.get_rng_state(), state)  # and the caller's stream is left alone
    other = build_network(with_values(config, {"train.seed": 1}))
    assert torch.equal(first.heads["cluster_head"].weight, again.heads["cluster_head"].weight)
    assert not torch.equal(first.heads["cluster_head"].weight, other.heads["cluster_head"].weight)


@pytest.mark.parametrize(
    ("device", "chosen", "n_steps", "expected"),
    [
        ("cuda", "on", 1, True),
        ("cuda", "auto", 10**9, True),
        ("cuda", "auto", 1, False),
        ("cuda", "off", 10**9, False),
        ("cpu", "on", 10**9, False),
    ],
)
def test_what_is_compiled_is_announced_and_advised_upon_by_nobody(
    tiny_config, device, chosen, n_steps, expected
):
    notes = []
    config = with_values(tiny_config, {"train.compile": chosen})
    plan = SimpleNamespace(steps_after=lambda _: n_steps)
    observer = SimpleNamespace(note=notes.append)
    compiled = assembly._compiled(config, torch.device(device), plan, observer)
    assert (compiled is not assembly.as_it_is) == bool(notes) == expected
    with warnings.catch_warnings(record=True) as heard:
        warnings.warn("TensorFloat32 tensor cores for float32 are not enabled", stacklevel=1)
    assert not (expected and heard)


@pytest.mark.parametrize(
    ("device", "n_images", "expected"),
    [("cuda", 50, "beside"), ("cuda", 200, "in line"), ("cpu", 50, "left to autograd")],
)
def test_weight_gradients_have_a_stream_of_their_own_where_layers_leave_room(
    monkeypatch, device, n_images, expected
):
    monkeypatch.setattr(
        assembly.WeightGradientStream,
        "on",
        lambda _: assembly.WeightGradientStream(stream="another"),
    )
    stream = assembly._gradient_stream(torch.device(device), n_images * 32 * 32)
    if expected == "left to autograd":
        assert stream is None
    else:
        assert stream.stream == ("another" if expected == "beside" else None)


def steps_of_the_paper_preset(device: str, precision: str) -> dict[str, float]:
    random = np.random.default_rng(0)
    image_set = from_arrays(random.integers(0, 256, (60, 32, 32, 3), np.uint8))
    config = with_values(
        preset("cifar10-paper"), {"train.device": device, "train.precision": precision}
    )
    training = build_training(resolve(config, image_set), image_set, SilentObserver(), None)
    # The ImageNet ResNet-34 less its classifier and 7x7 stem, plus a 3x3 stem on two Sobel
    # channels and linear heads of 10 and 70.
    expected = 21_797_672 - 513_000 - 7 * 7 * 3 * 64 + 3 * 3 * 2 * 64 + 513 * (10 + 70)
    assert training.model.network.n_parameters == expected
    step = training.trainer.steps[0]
    step.generator.manual_seed(0)
    network = training.trainer.network
    network.train()
    before = network.backbone.stem[0].weight.detach().clone()
    # Few images on the CPU, where a ResNet-34 takes its time; a captured step has its own number.
    n_images = 50 if device == "cuda" else 8
    indices = torch.arange(n_images, device=training.model.device)
    terms = step(indices, ("over_clustering_head",)) | step(indices, ("cluster_head",))
    assert not torch.equal(network.backbone.stem[0].weight, before)
    return {name: term.item() for name, term in terms.items()}


def test_the_papers_cifar10_preset_steps_on_the_cpu():
    terms = steps_of_the_paper_preset("cpu", "float32")
    assert len(terms) == 5
    assert all(np.isfinite(list(terms.values())))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_papers_cifar10_preset_steps_on_the_gpu(precision):
    terms = steps_of_the_paper_preset("cuda", precision)
    assert all(np.isfinite(list(terms.values())))


def test_two_phases_of_a_kind_share_their_part_and_must_agree_on_it(tiny_config, tiny_set):
    values = {
        "phases": ("contrast", "contrast-2", "heads"),
        **dict.fromkeys(("contrast.epochs", "contrast-2.epochs"), 1),
        **dict.fromkeys(("contrast.batch_size", "contrast-2.batch_size"), 16),
        **dict.fromkeys(("contrast.projection", "contrast-2.projection"), 8),
    }
    config = resolve(with_values(tiny_config, values), tiny_set)
    assert list(build_network(config, for_training=True).parts) == ["contrast"]
    other = with_values(config, {"contrast-2.projection": 4})
    with pytest.raises(InputError, match="two phases of kind contrast share"):
        build_network(other, for_training=True)

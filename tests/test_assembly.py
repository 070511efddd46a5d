from dataclasses import replace

import numpy as np
import pytest
import torch

from dcdc.assembly import build_network, build_training, resolve
from dcdc.config import RunConfig, with_values
from dcdc.data import from_arrays
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS
from dcdc.errors import InputError
from dcdc.presets import preset


def test_the_images_decide_what_the_config_leaves_open(tiny_set):
    config = with_values(RunConfig(), {"train.batch_size": 8})
    resolved = resolve(config, tiny_set)
    assert (resolved.n_clusters, resolved.data.size) == (3, 8)
    pixels = tiny_set.images / 255
    assert resolved.network.mean == pytest.approx((pixels.mean(),), abs=1e-6)
    assert resolved.network.std == pytest.approx((pixels.std(),), abs=1e-6)
    assert resolve(resolved, tiny_set) == resolved


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_clusters": 49}, "48 images cannot fill 49 clusters"),
        ({"train.batch_size": 49}, "a batch of 49 is larger than the set of 48 images"),
        (
            {"instance.epochs": 1, "instance.batch_size": 49},
            r"^a batch of 49 is larger than .* images: lower --set instance.batch_size=$",
        ),
        (
            {"self_label.epochs": 1, "self_label.batch_size": 49},
            r"^a batch of 49 is larger than .* images: lower --set self_label.batch_size=$",
        ),
        (
            {"train.neighbours": 48},
            r"^48 images do not have 48 neighbours each: lower train.neighbours$",
        ),
        ({"network.mean": (1, 1, 1), "network.std": (1, 1, 1)}, r"images of 1 channel"),
    ],
)
def test_what_the_images_cannot_bear_is_refused(tiny_config, tiny_set, values, message):
    with pytest.raises(InputError, match=message):
        resolve(with_values(tiny_config, values), tiny_set)


def test_a_phase_that_is_off_and_all_others_as_neighbours_are_no_matter(tiny_config, tiny_set):
    values = {"instance.batch_size": 49, "self_label.batch_size": 49, "train.neighbours": 47}
    resolved = resolve(with_values(tiny_config, values), tiny_set)
    assert resolved.train.neighbours == 47


def test_without_classes_the_number_of_clusters_must_be_said(tiny_set):
    unlabelled = replace(tiny_set, targets=None, class_names=())
    with pytest.raises(InputError, match="say how many --clusters"):
        resolve(RunConfig(), unlabelled)


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


def test_bfloat16_on_the_cpu_is_refused_before_training(tiny_config, tiny_set):
    with pytest.raises(InputError, match="bfloat16 needs --device cuda"):
        resolve(with_values(tiny_config, {"train.precision": "bfloat16"}), tiny_set)


@pytest.mark.parametrize(("given", "resolved"), [(0, 0), (0.5, 2), (0.99, 3), (1, 1), (3, 3)])
def test_features_first_may_be_a_share_of_the_epochs(tiny_config, tiny_set, given, resolved):
    config = resolve(with_values(tiny_config, {"train.over_clustering_first": given}), tiny_set)
    assert config.train.over_clustering_first == resolved


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
    step = training.trainer.steps[HEADS]
    step.generator.manual_seed(0)
    network = training.trainer.network
    network.train()
    before = network.trunk.stem[0].weight.detach().clone()
    # Few images on the CPU, where a ResNet-34 takes its time; a captured step has its own number.
    n_images = 50 if device == "cuda" else 8
    indices = torch.arange(n_images, device=training.model.device)
    terms = step(indices, ("over_clustering_head",)) | step(indices, ("cluster_head",))
    assert not torch.equal(network.trunk.stem[0].weight, before)
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


def test_a_batch_that_the_processes_cannot_share_is_refused(tiny_config, tiny_set):
    assert resolve(tiny_config, tiny_set, n_processes=16)
    with pytest.raises(InputError, match="16 images cannot be shared by 17 processes"):
        resolve(tiny_config, tiny_set, n_processes=17)

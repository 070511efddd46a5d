from contextlib import contextmanager

import numpy as np
import pytest
import torch

from dcdc.engine.assignment import (
    _as_array,
    assign_images,
    extract_features,
    look_at_images,
)
from dcdc.networks import ClusteringNetwork, build_backbone


def built(backbone):
    return ClusteringNetwork(
        build_backbone(backbone, 1), in_channels=1, n_clusters=3, mean=(0.5,), std=(0.2,)
    )


@pytest.fixture
def network():
    torch.manual_seed(0)
    return built("small")


@pytest.fixture
def images():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (10, 1, 8, 8), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("answer", [assign_images, extract_features, look_at_images])
def test_images_are_prepared_in_full_precision_and_read_under_autocast(network, images, answer):
    inside, seen = [], []

    @contextmanager
    def autocast():
        inside.append(True)
        yield
        inside.pop()

    def prepare(x):
        seen.append(("prepare", bool(inside)))
        return x

    network.register_forward_pre_hook(lambda *_: seen.append(("network", bool(inside))))
    answer(network, images.split(5), prepare, autocast)
    assert seen == [("prepare", False), ("network", True)] * 2


def test_chunks_do_not_matter_and_the_network_is_left_as_it_was(network, images):
    network.train()
    whole = assign_images(network, [images], lambda x: x).probabilities
    parts = assign_images(network, images.split([7, 1, 2]), lambda x: x).probabilities
    assert network.training
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    features, assigned = look_at_images(network, [images], lambda x: x)
    np.testing.assert_array_equal(assigned.probabilities, whole)
    np.testing.assert_array_equal(features, extract_features(network, [images], lambda x: x))


def test_many_parts_are_joined_in_their_order():
    parts = [torch.full((3, 2), float(n)) for n in range(75)]
    found = _as_array(iter(parts))
    assert found.dtype == np.float32
    assert np.array_equal(found[:, 1], np.repeat(np.arange(75), 3))


@pytest.mark.parametrize("backbone", ["small", "patches", "resnet18"])
def test_an_answer_is_the_same_to_the_last_bit_whatever_is_beside_the_image(backbone, images):
    torch.manual_seed(0)
    network = built(backbone)
    images = torch.cat([images] * 4)[:37]
    network.train()
    network(images / 255)
    features, assigned = look_at_images(network, [images], lambda images: images)
    for size in (1, 2, 5, 16):
        chunks = torch.split(images, size)
        again, answers = look_at_images(network, chunks, lambda images: images)
        np.testing.assert_array_equal(again, features)
        np.testing.assert_array_equal(answers.probabilities, assigned.probabilities)

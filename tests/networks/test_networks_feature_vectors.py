"""Feature vectors through a clustering network: directions, and heads that answer as for images."""

import math

import pytest
import torch

from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, build_backbone
from dcdc.networks.feature_vectors import Directions


def a_network(**changes):
    torch.manual_seed(0)
    settings = {"in_channels": 3, "n_clusters": 4, "mean": (0.5,) * 3, "std": (0.5,) * 3}
    return ClusteringNetwork(build_backbone("small", 3), **(settings | changes)).eval()


def test_directions_are_unit_vectors_from_the_middle_times_the_root_of_their_number():
    directions = Directions(3)
    directions.middle.copy_(torch.tensor([1.0, 2.0, 3.0]))
    rows = torch.tensor([[4.0, 2.0, 3.0], [1.0, 2.0, -1.0], [2.0, 4.0, 5.0]])
    for row, found in zip(rows.tolist(), directions(rows).tolist(), strict=True):
        away = [row[0] - 1, row[1] - 2, row[2] - 3]
        length = math.sqrt(sum(value**2 for value in away))
        assert found == pytest.approx([math.sqrt(3) * value / length for value in away])


def test_a_vector_at_the_middle_has_no_direction_and_a_finite_gradient():
    directions = Directions(2)
    row = torch.zeros(1, 2, requires_grad=True)
    found = directions(row)
    found.sum().backward()
    assert found.tolist() == [[0, 0]]
    assert torch.isfinite(row.grad).all()


def test_features_that_were_stored_are_answered_as_their_images_are():
    network = a_network(takes_vectors=True)
    network.directions.middle.normal_()
    images = torch.rand(5, 3, 16, 16)
    with torch.no_grad():
        seen = network(images)
        stored = network(network.raw_features(images))
    assert torch.equal(seen.features, stored.features)
    assert torch.equal(seen.assign[CLUSTER_HEAD], stored.assign[CLUSTER_HEAD])


def test_images_are_resized_to_the_backbones_input():
    network = a_network(input_size=24)
    given = []
    network.backbone.register_forward_pre_hook(lambda _, args: given.append(args[0].shape))
    with torch.no_grad():
        network(torch.rand(2, 3, 16, 16))
        network(torch.rand(2, 3, 24, 24))
    assert given == [(2, 3, 24, 24)] * 2


def test_many_sub_heads_answer_as_each_would_alone():
    network = a_network(n_sub_heads=3)
    images = torch.rand(6, 3, 16, 16)
    with torch.no_grad():
        together = network(images).assign
        features = network.features(images)
        for name in network.sub_heads(CLUSTER_HEAD):
            alone = torch.softmax(network.heads[name](features), dim=1)
            torch.testing.assert_close(together[name], alone)
    assert list(together) == list(network.sub_heads(CLUSTER_HEAD))

import pytest
import torch

from baselines.plain_network import PlainNetwork
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, build_backbone


@pytest.mark.parametrize(
    ("backbone", "channels", "sobel"),
    [("small", 1, False), ("resnet18", 3, False), ("resnet34", 3, True)],
)
def test_it_computes_what_our_network_does(backbone, channels, sobel):
    torch.manual_seed(0)
    ours = ClusteringNetwork(
        build_backbone(backbone, 2 if sobel else channels),
        in_channels=channels,
        n_clusters=5,
        sobel=sobel,
        mean=[0.0] * channels,
        std=[1.0] * channels,
    )
    plain = PlainNetwork(backbone, channels, 5, sobel=sobel)
    with torch.no_grad():
        for weight, same in zip(ours.parameters(), plain.parameters(), strict=True):
            same.copy_(weight)  # refuses another shape
    images = torch.rand(6, channels, 16, 16)
    expected = ours(images).assign[CLUSTER_HEAD]
    torch.testing.assert_close(plain(images), expected, atol=1e-4, rtol=1e-3)

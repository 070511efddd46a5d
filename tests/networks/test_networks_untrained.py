import torch
from torch.nn import functional as F

from dcdc.networks.untrained import UntrainedMaps


def test_every_layer_is_seen_field_by_field():
    torch.manual_seed(0)
    network = UntrainedMaps(1, 8, mean=[0.5], std=[0.25], width=3, evened=False)
    images = torch.rand(2, 1, 8, 8)
    found = network.features(images)
    assert found.shape == (2, (3 + 6) * 4)
    first = F.conv2d((images - 0.5) / 0.25, network.layers[0].weight, padding=1).relu()
    field = first[:, 1, :4, 4:].mean(dim=(1, 2)).sqrt()  # the second map, above, on the right
    torch.testing.assert_close(found[:, 1 * 4 + 1], field)


def test_even_contrast_takes_the_light_away():
    torch.manual_seed(0)
    network = UntrainedMaps(3, 16, mean=[0.5] * 3, std=[0.25] * 3, width=2, evened=True)
    images = torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(
        network.features(images + 0.3), network.features(images), rtol=1e-3, atol=1e-3
    )

import pytest
import torch

from dcdc.networks.front import Normalise, Sobel, front


def test_normalise_subtracts_and_divides_per_channel():
    images = torch.rand(2, 3, 4, 4)
    normalised = Normalise((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))(images)
    for channel, (mean, std) in enumerate([(0.1, 0.5), (0.2, 0.6), (0.3, 0.7)]):
        expected = (images[:, channel] - mean) / std
        torch.testing.assert_close(normalised[:, channel], expected)


def test_normalise_refuses_a_deviation_of_zero():
    with pytest.raises(ValueError, match="positive std"):
        Normalise((0.1,), (0.0,))


@pytest.mark.parametrize("channels", [1, 3])
def test_sobel_agrees_with_a_loop_over_pixels(channels):
    images = torch.rand(2, channels, 5, 6)
    edges = Sobel()(images)
    assert edges.shape == (2, 2, 5, 6)
    across = [[1, 0, -1], [2, 0, -2], [1, 0, -1]]
    for image in range(2):
        grey = images[image].mean(0)
        for i in range(5):
            for j in range(6):
                found = [0.0, 0.0]
                for di in range(3):
                    for dj in range(3):
                        row, column = i + di - 1, j + dj - 1
                        if 0 <= row < 5 and 0 <= column < 6:
                            pixel = grey[row, column].item()
                            found[0] += across[di][dj] * pixel
                            found[1] += across[dj][di] * pixel
                assert edges[image, 0, i, j].item() == pytest.approx(found[0], abs=1e-5)
                assert edges[image, 1, i, j].item() == pytest.approx(found[1], abs=1e-5)


def test_sobel_is_fixed():
    assert list(Sobel().parameters()) == []


@pytest.mark.parametrize("sobel", [Sobel(), None])
def test_autocast_does_not_round_what_the_backbone_reads(sobel):
    images, normalise = torch.rand(2, 3, 5, 6), Normalise((0.5,) * 3, (0.2,) * 3)
    outside = front(images, normalise, sobel)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = front(images, normalise, sobel)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)

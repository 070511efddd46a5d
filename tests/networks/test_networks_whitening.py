import pytest
import torch

from dcdc.networks.whitening import LocalContrast, Whitening, cross_spectrum


def correlated(n=400, side=12, seed=0):
    """Smooth images of three channels that are nearly one, of mean 0."""
    draws = torch.Generator().manual_seed(seed)
    light = torch.randn(n, 1, side, side, generator=draws)
    for axis in (2, 3):
        light = light + light.roll(1, axis) + light.roll(2, axis)
    return light + 0.3 * torch.randn(n, 3, side, side, generator=draws)


def slow_local_contrast(images, deviation, least):
    n, channels, height, width = images.shape
    reach = round(2 * deviation)

    def inside(at, size):
        return -at if at < 0 else 2 * (size - 1) - at if at >= size else at

    def smooth(plane):
        out = torch.zeros_like(plane)
        for i in range(height):
            for j in range(width):
                total = weights = 0.0
                for di in range(-reach, reach + 1):
                    for dj in range(-reach, reach + 1):
                        weight = torch.exp(torch.tensor(-(di**2 + dj**2) / 2 / deviation**2))
                        total += weight * plane[inside(i + di, height), inside(j + dj, width)]
                        weights += weight
                out[i, j] = total / weights
        return out

    out = torch.empty_like(images)
    for image in range(n):
        light = smooth(images[image].mean(0))
        centred = images[image] - light
        power = smooth((centred**2).mean(0))
        for channel in range(channels):
            out[image, channel] = centred[channel] / (power.sqrt() + least)
    return out


def test_local_contrast_is_what_a_loop_over_pixels_finds():
    images = torch.randn(2, 3, 7, 6, generator=torch.Generator().manual_seed(1))
    found = LocalContrast(deviation=1.0, least=0.1)(images)
    torch.testing.assert_close(found, slow_local_contrast(images, 1.0, 0.1), rtol=1e-4, atol=1e-5)


def test_more_light_or_contrast_changes_little():
    images = correlated(4, side=16)
    even = LocalContrast(least=1e-4)
    torch.testing.assert_close(even(3 * images + 5), even(images), rtol=1e-2, atol=1e-2)


def test_colour_is_kept_where_light_is_even():
    red = torch.zeros(1, 3, 16, 16)
    red[:, 0] = 1
    found = LocalContrast()(red)
    assert found[:, 0].min() > 0.5
    assert found[:, 1:].max() < 0


def slow_cross_spectrum(images):
    """By the definition of the transform, frequency by frequency."""
    n, channels, height, width = images.shape
    total = torch.zeros(height, width, channels, channels, dtype=torch.complex128)
    down = torch.arange(height, dtype=torch.float64)[:, None]
    across = torch.arange(width, dtype=torch.float64)[None, :]
    for u in range(height):
        for v in range(width):
            wave = torch.exp(-2j * torch.pi * (u * down / height + v * across / width))
            parts = (images.double() * wave).sum((2, 3)) / (height * width) ** 0.5
            for image in range(n):
                total[u, v] += parts[image][:, None] * parts[image].conj()[None, :] / n
    return total


def test_the_spectrum_is_that_of_all_batches_together():
    images = correlated(10, side=5)
    found = cross_spectrum([images[:3], images[3:]])
    torch.testing.assert_close(found, slow_cross_spectrum(images))


def test_whitened_images_have_one_power_at_all_frequencies_and_colours():
    images = correlated()
    whiten = Whitening(cross_spectrum([images]), floor=1e-9)
    spectrum = cross_spectrum([whiten(images)])
    wanted = torch.eye(3, dtype=spectrum.dtype).expand_as(spectrum)
    torch.testing.assert_close(spectrum, wanted, rtol=0, atol=1e-3)


def test_it_is_zca_where_that_is_the_same_everywhere():
    """On all rolled copies of some images statistics are exactly the same at all places."""
    few = correlated(60, side=4)
    images = torch.cat([few.roll((i, j), (2, 3)) for i in range(4) for j in range(4)])
    flat = images.flatten(1).double()
    variances, axes = torch.linalg.eigh(flat.T @ flat / len(flat))
    floor = 1e-3 * variances.max()
    wanted = flat @ axes @ torch.diag((variances + floor).rsqrt()) @ axes.T
    found = Whitening(cross_spectrum([images]), floor=1e-3)(images)
    scale = wanted.std()
    torch.testing.assert_close(found.flatten(1).double(), wanted / scale, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("floor", [1e-3, 0.1])
def test_the_variance_of_the_set_becomes_one(floor):
    images = correlated()
    found = Whitening(cross_spectrum([images]), floor=floor)(images)
    assert float(found.square().mean()) == pytest.approx(1, rel=1e-3)


def test_it_moves_and_is_kept_with_a_network():
    whiten = Whitening(cross_spectrum([correlated(20, side=5)]))
    again = Whitening(cross_spectrum([correlated(20, side=5, seed=1)]))
    again.load_state_dict(whiten.state_dict())
    images = correlated(2, side=5, seed=2)
    assert torch.equal(again(images), whiten(images))

import colorsys
import itertools

import pytest
import torch
from scipy.stats import binomtest, chisquare, kstest

from dcdc.augment import to_float
from dcdc.augment.color import (
    Jitter,
    apply_grey,
    apply_jitter,
    apply_noise,
    draw_grey,
    draw_jitter,
    draw_noise,
    shift_hue,
)
from dcdc.errors import InputError


def test_bytes_become_unit_floats():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    out = to_float(images)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.flatten(), torch.tensor([0, 0.2, 1]))
    assert images.flatten().tolist() == [0, 51, 255]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_floats_keep_their_values(dtype):
    out = to_float(torch.full((1, 1, 2, 2), 0.25, dtype=dtype))
    assert out.dtype == torch.float32
    assert (out == 0.25).all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16, torch.bool])
def test_other_numbers_are_refused(dtype):
    with pytest.raises(InputError, match="give uint8"):
        to_float(torch.zeros(1, 1, 2, 2, dtype=dtype))


def test_adds_and_clamps():
    images = torch.tensor([0.0, 0.2, 0.9]).view(3, 1, 1, 1)
    noise = torch.tensor([-0.5, 0.25, 0.5]).view(3, 1, 1, 1)
    torch.testing.assert_close(apply_noise(images, noise).flatten(), torch.tensor([0, 0.45, 1]))
    assert torch.equal(images.flatten(), torch.tensor([0.0, 0.2, 0.9]))


def test_every_pixel_has_its_own_normal_value():
    noise = draw_noise((10, 3, 16, 12), 0.1, torch.Generator().manual_seed(0))
    assert noise.shape == (10, 3, 16, 12)
    assert kstest(noise.flatten().numpy() / 0.1, "norm").pvalue > 1e-3
    assert noise.unique().numel() > 0.99 * noise.numel()
    assert torch.equal(noise, draw_noise((10, 3, 16, 12), 0.1, torch.Generator().manual_seed(0)))


def test_only_the_chosen_turn_grey():
    images = torch.rand(4, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([True, False, True, False])
    out = apply_grey(images, chosen)
    assert torch.equal(out[~chosen], images[~chosen])
    for image, grey in zip(images[chosen], out[chosen], strict=True):
        for row in range(5):
            for column in range(7):
                red, green, blue = image[:, row, column].tolist()
                expected = 0.2989 * red + 0.587 * green + 0.114 * blue
                assert grey[:, row, column].tolist() == pytest.approx([expected] * 3, abs=1e-6)


def test_grey_of_grey_is_grey():
    images = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    once = apply_grey(images, torch.ones(2, dtype=torch.bool))
    twice = apply_grey(once, torch.ones(2, dtype=torch.bool))
    torch.testing.assert_close(once, twice, atol=1.1e-4, rtol=0)  # the weights sum to .9999


def test_one_channel_is_grey_already():
    images = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(2))
    assert torch.equal(apply_grey(images, torch.tensor([True, False])), images)


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_probability(p):
    chosen = draw_grey(10_000, p, torch.Generator().manual_seed(3))
    assert binomtest(int(chosen.sum()), 10_000, p).pvalue > 1e-3
    assert torch.equal(chosen, draw_grey(10_000, p, torch.Generator().manual_seed(3)))


def loop(image, shift):
    out = torch.empty_like(image)
    for row in range(image.shape[1]):
        for column in range(image.shape[2]):
            hue, saturation, value = colorsys.rgb_to_hsv(*image[:, row, column].tolist())
            rgb = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
            out[:, row, column] = torch.tensor(rgb)
    return out


@pytest.mark.parametrize("levels", [0, 1, 2, 255])
def test_equals_colorsys(levels):
    """With few levels the pixels are full of ties: grey, black, two equal channels."""
    generator = torch.Generator().manual_seed(levels)
    images = torch.rand(6, 3, 7, 9, generator=generator)
    if levels:
        images = (images * levels).round() / levels
    shift = torch.tensor([-0.5, -0.3, 0.0, 0.1, 0.37, 0.5])
    expected = [loop(image, s) for image, s in zip(images, shift.tolist(), strict=True)]
    torch.testing.assert_close(shift_hue(images, shift), torch.stack(expected), atol=2e-6, rtol=0)


def test_third_of_a_turn_rotates_the_channels():
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    turned = shift_hue(images, torch.full((2,), 1 / 3))
    torch.testing.assert_close(turned, images.roll(1, dims=1), atol=2e-6, rtol=0)


def test_grey_and_black_have_no_hue():
    images = torch.linspace(0, 1, 16).view(1, 1, 4, 4).expand(1, 3, 4, 4)
    assert torch.equal(shift_hue(images, torch.tensor([0.3])), images)


ORDERS = list(itertools.permutations(range(4)))


def grey_of(pixel):
    return 0.2989 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]


def blended(pixels, others, factor):
    return [
        [min(1.0, max(0.0, factor * v + (1 - factor) * other)) for v in pixel]
        for pixel, other in zip(pixels, others, strict=True)
    ]


def jitter_loop(image, factors, order):
    """One image, one op at a time, one pixel at a time, in Python floats."""
    pixels = image.flatten(1).T.tolist()
    for op in order:
        factor = factors[op]
        greys = [grey_of(pixel) for pixel in pixels]
        if op == 0:
            pixels = blended(pixels, [0.0] * len(pixels), factor)
        elif op == 1:
            pixels = blended(pixels, [sum(greys) / len(greys)] * len(pixels), factor)
        elif op == 2:
            pixels = blended(pixels, greys, factor)
        else:
            hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels]
            pixels = [colorsys.hsv_to_rgb((h + factor) % 1, s, v) for h, s, v in hsv]
    return torch.tensor(pixels).T.view_as(image)


def places(orders):
    return torch.tensor(orders).argsort(1).float()


def random_jitter(n, orders, seed):
    g = torch.Generator().manual_seed(seed)
    factors = [torch.empty(n).uniform_(0.2, 1.8, generator=g) for _ in range(3)]
    return Jitter(*factors, torch.empty(n).uniform_(-0.5, 0.5, generator=g), places(orders))


def test_every_order_equals_a_loop_over_ops_and_pixels():
    images = torch.rand(24, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    jitter = random_jitter(24, ORDERS, 1)
    factors = torch.stack(jitter[:4], 1).tolist()
    expected = torch.stack(
        [jitter_loop(*case) for case in zip(images, factors, ORDERS, strict=True)],
    )
    torch.testing.assert_close(apply_jitter(images, jitter), expected, atol=3e-6, rtol=0)
    # The orders matter: running them all in the first one is not the same (but some commute).
    same = jitter._replace(when=places([ORDERS[0]] * 24))
    assert (apply_jitter(images, same) - expected).abs().amax((1, 2, 3)).median() > 1e-2


@pytest.mark.parametrize("on", [s for n in range(4) for s in itertools.combinations(range(4), n)])
def test_ops_that_are_off_are_left_out(on):
    images = torch.rand(24, 3, 4, 5, generator=torch.Generator().manual_seed(2))
    full = random_jitter(24, ORDERS, 3)
    jitter = Jitter(*(full[op] if op in on else None for op in range(4)), full.when)
    expected = [
        jitter_loop(image, [None if f is None else f[i].item() for f in jitter[:4]], kept)
        for i, (image, order) in enumerate(zip(images, ORDERS, strict=True))
        for kept in [[op for op in order if op in on]]
    ]
    torch.testing.assert_close(
        apply_jitter(images, jitter), torch.stack(expected), atol=3e-6, rtol=0
    )


def test_neutral_factors_change_nothing():
    images = torch.rand(24, 3, 6, 6, generator=torch.Generator().manual_seed(4))
    one, zero = torch.ones(24), torch.zeros(24)
    torch.testing.assert_close(
        apply_jitter(images, Jitter(one, one, one, zero, places(ORDERS))),
        images,
        atol=1e-6,
        rtol=0,
    )
    assert torch.equal(apply_jitter(images, Jitter(one, one, one, None, places(ORDERS))), images)
    assert apply_jitter(images, Jitter(None, None, None, None, places(ORDERS))) is images


def test_one_channel_knows_no_colour():
    images = torch.rand(24, 1, 6, 6, generator=torch.Generator().manual_seed(5))
    jitter = random_jitter(24, ORDERS, 6)
    without = jitter._replace(saturation=None, hue=None)
    assert torch.equal(apply_jitter(images, jitter), apply_jitter(images, without))
    assert apply_jitter(images, jitter._replace(brightness=None, contrast=None)) is images
    contrast = apply_jitter(images, jitter._replace(brightness=None))
    mean, factor = images.mean((1, 2, 3), keepdim=True), jitter.contrast[:, None, None, None]
    torch.testing.assert_close(contrast, (factor * images + (1 - factor) * mean).clamp(0, 1))


def test_factor_zero_is_black_and_flat_and_grey():
    images = torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(7))
    zero, when = torch.zeros(1), places([ORDERS[0]])
    assert (apply_jitter(images, Jitter(zero, None, None, None, when)) == 0).all()
    flat = apply_jitter(images, Jitter(None, zero, None, None, when))
    assert flat.unique().numel() == 1
    grey = apply_jitter(images, Jitter(None, None, zero, None, when))
    torch.testing.assert_close(grey[:, :1].expand_as(grey), grey)
    assert grey.unique().numel() > 1


def test_all_orders_are_equally_likely():
    order = draw_jitter(24_000, 1, 1, 1, 0.5, torch.Generator().manual_seed(8)).when.argsort(1)
    _, counts = order.unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_factors_are_uniform_and_independent():
    jitter = draw_jitter(20_000, 0.4, 0.8, 1.5, 0.3, torch.Generator().manual_seed(9))
    bounds = [(0.6, 1.4), (0.2, 1.8), (0.0, 2.5), (-0.3, 0.3)]
    for factor, (low, high) in zip(jitter[:4], bounds, strict=True):
        assert kstest(factor.numpy(), "uniform", (low, high - low)).pvalue > 1e-3
    correlation = torch.corrcoef(torch.cat((torch.stack(jitter[:4]), jitter.when.T)))
    assert (correlation - torch.eye(8)).abs().max() < 0.03


def test_strength_zero_is_off_and_the_seed_fixes_the_rest():
    draws = [draw_jitter(9, 0, 0.4, 0, 0.1, torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert draws[0].brightness is None
    assert draws[0].saturation is None
    assert torch.equal(draws[0].contrast, draws[1].contrast)
    assert torch.equal(draws[0].when, draws[1].when)
    assert not torch.equal(draws[0].contrast, draws[2].contrast)

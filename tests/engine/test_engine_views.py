"""Which copies a step sees, and of which images."""

import pytest
import torch

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.engine.views import OriginalAndPerturbed, PerturbedPair


@pytest.fixture
def images(tiny_set):
    return torch.tensor(tiny_set.images[:12]).permute(0, 3, 1, 2)


def original_copy():
    return OriginalCopy(8, 10)


def perturbed_copy(n_repeats=2):
    return PerturbedCopy(n_repeats=n_repeats, shift=0.1, noise=0.1, flip=0.5)


def copies_of(views, images):
    return views.copies(images, views.draw(images, torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("partners", [False, True])
def test_with_partners_the_second_half_is_perturbed_and_the_first_half_is_not(images, partners):
    views = OriginalAndPerturbed(original_copy(), perturbed_copy(), partners=partners)
    first, second = (images[:6], images[6:]) if partners else (images, images)
    generator = torch.Generator().manual_seed(3)
    original = original_copy()(first, generator)
    perturbed = perturbed_copy()(second, generator)
    copies = copies_of(views, images)
    assert (len(copies[0]), len(copies[1])) == (len(first), 2 * len(second))
    assert torch.equal(copies[0], original)
    assert torch.equal(copies[1], perturbed)


def test_a_pair_is_one_copy_of_every_image_and_then_the_other(images):
    (copies,) = copies_of(PerturbedPair(perturbed_copy()), images)
    assert torch.equal(copies, perturbed_copy()(images, torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_a_pair_is_of_two(n_repeats):
    with pytest.raises(AssertionError):
        PerturbedPair(perturbed_copy(n_repeats))


@pytest.mark.parametrize(
    "views",
    [OriginalAndPerturbed(original_copy(), perturbed_copy()), PerturbedPair(perturbed_copy())],
)
def test_a_part_of_a_draw_makes_the_same_copies_of_its_images(views, images):
    """So that of several processes each makes its share of what one would make."""
    draw = views.draw(images, torch.Generator().manual_seed(3))
    rows = slice(4, 10)
    whole = views.copies(images, draw)
    for part, copy in zip(views.copies(images[rows], views.part(draw, rows)), whole, strict=True):
        by_repeat = copy.unflatten(0, (-1, 12))[:, rows].flatten(0, 1)
        torch.testing.assert_close(part, by_repeat)


def test_the_copies_are_applied_by_what_the_caller_hands_back(images):
    def applied(copy):
        return lambda images, draw: copy.apply(images, draw) * 0

    for views in (
        OriginalAndPerturbed(original_copy(), perturbed_copy(), applied=applied),
        PerturbedPair(perturbed_copy(), applied=applied),
    ):
        assert all((copy == 0).all() for copy in copies_of(views, images))

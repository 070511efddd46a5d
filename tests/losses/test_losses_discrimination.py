"""Cluster discrimination against slow loops over images, sets and centres."""

import math

import pytest
import torch
from torch.nn import functional as F

from dcdc.losses import balanced_labels, discrimination_loss, moved_centres, next_duals

SIZES = (2, 4)
N_IMAGES, N_NUMBERS = 5, 6


def example(seed=0):
    drawn = torch.Generator().manual_seed(seed)
    projected = F.normalize(torch.randn(2 * N_IMAGES, N_NUMBERS, generator=drawn).double(), dim=1)
    centres = F.normalize(torch.randn(2, 4, N_NUMBERS, generator=drawn).double(), dim=2)
    is_centre = torch.arange(4) < torch.tensor(SIZES)[:, None]
    labels = torch.stack([torch.randint(n, (N_IMAGES,), generator=drawn) for n in SIZES], dim=1)
    return projected, centres, is_centre, labels


def cosine(row, centre) -> float:
    return sum(float(a) * float(b) for a, b in zip(row, centre, strict=True))


def softmax(row, centres, temperature):
    powers = [math.exp(cosine(row, centre) / temperature) for centre in centres]
    return [power / sum(powers) for power in powers]


def cosines_of(projected, centres):
    return torch.einsum("bd,skd->bsk", projected, centres)


@pytest.mark.parametrize("seed", [0, 1])
def test_labels_are_of_the_centre_nearest_to_both_copies_once_duals_are_added(seed):
    projected, centres, is_centre, _ = example(seed)
    duals = torch.rand(2, 4, generator=torch.Generator().manual_seed(seed)).double()
    found = balanced_labels(cosines_of(projected, centres), duals, is_centre)
    for image in range(N_IMAGES):
        for number, size in enumerate(SIZES):
            nearness = [
                (
                    cosine(projected[image], centres[number, k])
                    + cosine(projected[image + N_IMAGES], centres[number, k])
                )
                / 2
                + float(duals[number, k])
                for k in range(size)
            ]
            assert found[image, number] == nearness.index(max(nearness))


def test_a_cluster_with_few_images_gains_until_it_has_them():
    _, _, is_centre, _ = example()
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [0, 1]])
    duals = torch.tensor([[0.3, 0.0, 0, 0], [0.0, 0.05, 0.2, 0]])
    found = next_duals(duals, labels, is_centre, fewest=0.9, rate=0.1)
    expected = [
        [0.3 + 0.1 * (0.45 - 1), 0.1 * 0.45, 0, 0],
        [0, 0.05 + 0.1 * (0.225 - 0.6), 0.2 + 0.1 * 0.225, 0.1 * 0.225],
    ]
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_loss_agrees_with_the_slow_loop(temperature):
    projected, centres, is_centre, labels = example()
    found = discrimination_loss(
        cosines_of(projected, centres), labels, is_centre, temperature, label_weight=0.2
    )
    total = 0.0
    for row in range(2 * N_IMAGES):
        other = (row + N_IMAGES) % (2 * N_IMAGES)
        for number, size in enumerate(SIZES):
            own = softmax(projected[row], centres[number, :size], temperature)
            others = softmax(projected[other], centres[number, :size], temperature)
            for k in range(size):
                is_label = float(labels[row % N_IMAGES, number] == k)
                total -= (0.2 * is_label + 0.8 * others[k]) * math.log(own[k])
    assert found.item() == pytest.approx(total / (2 * N_IMAGES * len(SIZES)), rel=1e-9)


def test_the_other_copy_is_a_target_without_a_gradient():
    projected, centres, is_centre, labels = example()
    first = cosines_of(projected, centres).requires_grad_()
    discrimination_loss(first, labels, is_centre, 0.5, label_weight=0.2).backward()
    # of cross-entropy by a fixed target: the softmax minus the target
    for number, size in enumerate(SIZES):
        own = softmax(projected[0], centres[number, :size], 0.5)
        others = softmax(projected[N_IMAGES], centres[number, :size], 0.5)
        for k in range(size):
            target = 0.2 * float(labels[0, number] == k) + 0.8 * others[k]
            expected = (own[k] - target) / 0.5 / (2 * N_IMAGES * len(SIZES))
            assert first.grad[0, number, k].item() == pytest.approx(expected, rel=1e-7)
    assert not first.grad[:, 0, 2:].any()  # where there is no centre


def test_centres_move_by_the_logit_of_the_label_alone():
    projected, centres, is_centre, labels = example()
    found = moved_centres(centres, projected, labels, is_centre, 0.5, rate=0.3)
    for number, size in enumerate(SIZES):
        for k in range(size):
            step = torch.zeros(N_NUMBERS).double()
            for row in range(2 * N_IMAGES):
                if labels[row % N_IMAGES, number] == k:
                    sure = softmax(projected[row], centres[number, :size], 0.5)[k]
                    step += (1 - sure) / 0.5 * projected[row] / (2 * N_IMAGES)
            moved = centres[number, k] + 0.3 * step
            torch.testing.assert_close(found[number, k], moved / moved.norm())


def test_two_copies_of_each_image_are_asked_for():
    projected, centres, is_centre, labels = example()
    with pytest.raises(ValueError, match="4 labels are not of two copies in 10 rows"):
        discrimination_loss(cosines_of(projected, centres), labels[:4], is_centre, 1, 0.2)

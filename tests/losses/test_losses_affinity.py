"""The affinity matrices against cosines by hand, and the pairing of originals and copies."""

import pytest
import torch
from loss_examples import cosine, random_pair

from dcdc.losses import class_affinity, dcdc_loss, sample_affinity


def test_affinities_hold_the_cosines_entry_by_entry():
    assign, perturbed = random_pair(4, 2, 3)
    sample, classes = sample_affinity(assign, perturbed), class_affinity(assign, perturbed)
    assert sample.shape == (8, 8)
    assert classes.shape == (3, 3)
    for i in range(8):
        for j in range(8):
            expected = cosine(assign[i % 4].tolist(), perturbed[j].tolist())
            assert sample[i, j].item() == pytest.approx(expected)
    column = lambda table, k: table[:, k].tolist()  # noqa: E731
    for k in range(3):
        for m in range(3):
            expected = cosine(column(assign, k) * 2, column(perturbed, m))
            assert classes[k, m].item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("assign", "perturbed", "message"),
    [
        (torch.ones(4, 3), torch.ones(6, 3), "got 6 rows for 4 images"),
        (torch.ones(4, 3), torch.ones(4, 2), "got 3 and 2"),
        (torch.ones(4), torch.ones(4), "must be matrices"),
        (torch.ones(0, 3), torch.ones(0, 3), "got 0 rows for 0 images"),
    ],
)
@pytest.mark.parametrize("loss", [sample_affinity, class_affinity, dcdc_loss])
def test_wrong_shapes_are_named(assign, perturbed, message, loss):
    with pytest.raises(ValueError, match=message):
        loss(assign, perturbed)

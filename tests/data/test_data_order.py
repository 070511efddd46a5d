import pytest
import torch

from dcdc.data.order import epoch_batches
from dcdc.errors import InputError


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n", "size", "steps"), [(10, 3, 3), (9, 3, 3), (5, 5, 1), (4, 1, 4)])
def test_whole_batches_of_distinct_images(n, size, steps):
    batches = epoch_batches(n, size, seeded())
    assert batches.shape == (steps, size)
    assert batches.dtype == torch.int64
    visited = batches.flatten().tolist()
    assert len(set(visited)) == steps * size
    assert set(visited) <= set(range(n))


def test_the_seed_fixes_the_order_and_every_epoch_has_its_own():
    generator = seeded()
    first, second = epoch_batches(100, 7, generator), epoch_batches(100, 7, generator)
    assert torch.equal(first, epoch_batches(100, 7, seeded()))
    assert not torch.equal(first, second)
    assert not torch.equal(first, epoch_batches(100, 7, seeded(1)))
    assert set(first.flatten().tolist()) != set(second.flatten().tolist())


def test_over_many_epochs_every_image_is_visited():
    generator = seeded()
    visited = set()
    for _ in range(20):
        visited |= set(epoch_batches(10, 4, generator).flatten().tolist())
    assert visited == set(range(10))


@pytest.mark.parametrize("size", [0, -1, 11])
def test_a_batch_that_does_not_fit_is_refused(size):
    with pytest.raises(InputError, match=f"batch size is {size} for 10 images: give one from 1"):
        epoch_batches(10, size, seeded())

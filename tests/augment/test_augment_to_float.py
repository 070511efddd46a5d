import pytest
import torch

from dcdc.augment import to_float
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

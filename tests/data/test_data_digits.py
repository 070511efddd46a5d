import numpy as np
from sklearn.datasets import load_digits as sklearn_digits

from dcdc.data import load_digits


def test_digits_are_scikit_learns_stretched_to_255():
    digits, truth = load_digits(), sklearn_digits()
    assert digits.images.shape == (1797, 8, 8, 1)
    assert np.abs(digits.images[..., 0] / 255 * 16 - truth.images).max() < 0.04  # 16 / 255 / 2
    assert (digits.images.min(), digits.images.max()) == (0, 255)
    assert np.array_equal(digits.targets, truth.target)
    assert digits.class_names == tuple("0123456789")
    assert (digits.names[0], digits.names[-1]) == ("digit-0000", "digit-1796")


def test_digits_can_be_enlarged():
    assert load_digits(16).image_shape == (16, 16, 1)

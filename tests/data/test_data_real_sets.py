"""The real benchmarks as Parquet, where a checkout has them beside it."""

from pathlib import Path

import numpy as np
import pytest

from dcdc.data import load_images

SETS = Path(__file__).parents[3] / "shared" / "data"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SETS.is_dir(), reason=f"no real data sets at {SETS}"),
]


@pytest.mark.parametrize(
    ("name", "target", "shape", "n_classes", "first_class"),
    [
        ("cifar10", None, (60_000, 32, 32, 3), 10, "airplane"),
        ("cifar100", "coarse_label", (60_000, 32, 32, 3), 20, "aquatic_mammals"),
        ("stl10", None, (13_000, 96, 96, 3), 10, "airplane"),
    ],
)
def test_train_and_test_come_together(name, target, shape, n_classes, first_class):
    found = load_images(SETS / name, target=target)
    assert found.images.shape == shape
    assert found.class_names[0] == first_class
    assert np.bincount(found.targets).tolist() == [shape[0] // n_classes] * n_classes
    assert len(set(found.names)) == shape[0]
    assert 60 < found.images[::100].mean() < 180

"""Directions from the mean: a row at a time, and in no more memory than they take."""

import tracemalloc

import numpy as np

from dcdc.metrics.directions import directions


def test_each_row_points_from_the_mean_and_is_of_length_one():
    features = np.random.default_rng(0).normal(3, 1, (9_000, 5)).astype(np.float32)
    middle = features.mean(axis=0)
    found = directions(features)
    for number in (0, 4_095, 4_096, 8_999):
        away = features[number] - middle
        np.testing.assert_array_equal(found[number], away / np.linalg.norm(away))


def test_an_image_at_the_mean_points_nowhere():
    assert directions(np.ones((3, 4), np.float32)).tolist() == [[0.0] * 4] * 3


def test_no_second_array_of_that_size_is_made():
    features = np.ones((40_000, 64), np.float32)
    tracemalloc.start()
    directions(features)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * features.nbytes

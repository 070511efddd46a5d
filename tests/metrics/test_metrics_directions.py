"""Directions from the mean: a row at a time, and in no more memory than they take."""

import tracemalloc

import numpy as np

from dcdc.metrics.directions import directions, lengths_from


def test_each_row_points_from_the_mean_and_is_of_length_one():
    features = np.random.default_rng(0).normal(3, 1, (9_000, 5)).astype(np.float32)
    middle = features.mean(axis=0)
    found = directions(features)
    for number in (0, 4_095, 4_096, 8_999):
        away = features[number] - middle
        np.testing.assert_array_equal(found[number], away / np.linalg.norm(away))


def test_an_image_at_the_mean_points_nowhere():
    assert directions(np.ones((3, 4), np.float32)).tolist() == [[0.0] * 4] * 3


def peak_bytes(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_no_second_array_of_that_size_is_made():
    features = np.ones((40_000, 64), np.float32)
    assert peak_bytes(lambda: directions(features)) < 1.3 * features.nbytes
    assert peak_bytes(lambda: lengths_from(features[0], features)) < 0.4 * features.nbytes


def test_how_far_each_is_from_a_point():
    features = np.random.default_rng(0).normal(size=(5_000, 3)).astype(np.float32)
    found = lengths_from(features[7], features)
    wanted = [np.sqrt(sum((row - features[7]) ** 2)) for row in features]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)

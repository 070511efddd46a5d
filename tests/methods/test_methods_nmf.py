import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.methods import find_method
from dcdc.methods.nmf import factorise, neighbour_graph, plain_start
from dcdc.metrics import normalized_mutual_info, score

cluster = find_method("nmf").cluster


def slow_objective(points, codes, parts, graph, locality) -> float:
    """How far the parts make another image, and neighbours have other codes: both by a loop."""
    total = 0.0
    for row, code in zip(points.tolist(), codes.tolist(), strict=True):
        for at, value in enumerate(row):
            made = sum(share * part[at] for share, part in zip(code, parts.tolist(), strict=True))
            total += value * math.log(value / made) - value + made
    for one, other in zip(*graph.nonzero(), strict=True):
        for a, b in zip(codes[one].tolist(), codes[other].tolist(), strict=True):
            # Every pair is there twice, and has a divergence each way.
            total += locality * (a * math.log(a / b) + b * math.log(b / a)) / 2
    return total


@pytest.fixture
def small():
    """Twelve images of three parts, with a start and a graph of neighbours."""
    random = np.random.default_rng(0)
    shares, parts = random.dirichlet([0.3] * 3, 12), random.dirichlet([0.5] * 8, 3)
    points = (100 * shares @ parts + 0.5).astype(np.float64)
    codes, found = random.uniform(1, 20, (12, 3)), random.dirichlet([5] * 8, 3)
    return points, codes, found, neighbour_graph(points.astype(np.float32), 2, "cpu")


@pytest.mark.parametrize("locality", [0.0, 0.1, 1.0, 10.0])
def test_every_iteration_lowers_the_sum_of_divergences(small, locality):
    points, codes, parts, graph = small
    before = slow_objective(points, codes, parts, graph, locality)
    for _ in range(15):
        codes, parts = factorise(points, codes, parts, graph, locality, 1)
        after = slow_objective(points, codes, parts, graph, locality)
        assert after < before
        before = after
    np.testing.assert_allclose(parts.sum(axis=1), 1)


def test_without_locality_it_ends_where_plain_factorisation_does(small):
    """At the least divergence each code is what the image shares out to it."""
    points, codes, parts, graph = small
    codes, parts = factorise(points, codes, parts, graph, 0.0, 3000)
    shared_out = codes * ((points / (codes @ parts)) @ parts.T)
    np.testing.assert_allclose(shared_out, codes, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose((codes @ parts).sum(axis=1), points.sum(axis=1), rtol=1e-6)


def test_neighbours_have_the_more_alike_codes_the_more_locality_weighs(small):
    points, codes, parts, graph = small

    def apart(locality: float) -> float:
        found, _ = factorise(points, codes, parts, graph, locality, 100)
        one, other = graph.nonzero()
        return float(np.abs(found[one] - found[other]).sum())

    assert apart(10) < apart(1) < apart(0)


def test_a_graph_joins_neighbours_whoever_is_the_nearest_of_whom():
    points = np.array([[1, 0], [0.9, 0.1], [0.5, 0.5], [0, 1]], np.float32)
    graph = neighbour_graph(points, 1, "cpu")
    assert isinstance(graph, csr_array)
    # The third's nearest is the second, by a hair, and the last's is the third.
    assert graph.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]


def test_a_start_has_parts_that_sum_to_one_and_nothing_that_could_never_grow():
    points = np.abs(np.random.default_rng(0).normal(size=(30, 6))).astype(np.float32)
    codes, parts = plain_start(points, 4, 0)
    np.testing.assert_allclose(parts.sum(axis=1), 1, rtol=1e-5)
    assert codes.min() > 0
    assert parts.min() > 0


def test_images_of_one_part_each_are_told_apart_by_their_part(tiny_set):
    found = cluster(tiny_set, 3, 0)
    assert score(tiny_set.targets, found.assignments)["acc"] == 1
    assert found.features.shape == (48, 3)
    np.testing.assert_allclose(found.features.sum(axis=1), 1, rtol=1e-5)


def test_on_digits_the_term_of_neighbours_is_what_tells_them_apart():
    digits = load_digits()
    with_it, without = (
        normalized_mutual_info(
            digits.targets, cluster(digits, 10, 0, n_init=3, locality=locality).assignments
        )
        for locality in (1.0, 0.0)
    )
    assert with_it > 0.8 > without + 0.05


def test_more_clusters_than_pixels_are_borne():
    found = cluster(load_digits(), 70, 0, n_init=1, iterations=5).assignments
    assert found.max() < 70
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"locality": -0.1}, "locality = -0.1 must not be below 0"),
        ({"n_neighbours": 0}, "n_neighbours = 0 must be above 0"),
        ({"iterations": 0}, "iterations = 0 must be above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(tiny_set, settings, told):
    with pytest.raises(InputError, match=told):
        cluster(tiny_set, 3, 0, **settings)

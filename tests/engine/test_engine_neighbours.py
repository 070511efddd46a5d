"""Against a plain sort of every cosine, and what a batch's partners may be."""

import numpy as np
import pytest
import torch

from dcdc.engine import neighbours
from dcdc.engine.neighbours import choose_partners, find_neighbours, nearest_neighbours
from dcdc.runtime.processes import ALONE

CPU = torch.device("cpu")


def features(n_images: int, n_features: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_images, n_features)).astype(np.float32)


def by_sorting(rows: np.ndarray, k: int) -> list[list[int]]:
    found = []
    for i, row in enumerate(rows):
        cosines = {
            j: float(row @ other / np.linalg.norm(row) / np.linalg.norm(other))
            for j, other in enumerate(rows)
            if j != i
        }
        found.append(sorted(cosines, key=cosines.__getitem__, reverse=True)[:k])
    return found


@pytest.mark.parametrize("k", [1, 3, 22])
@pytest.mark.parametrize("chunk", [1, 7, 23, 2048])  # 23 images: cut evenly, unevenly, not at all
@pytest.mark.parametrize("columns", [1, 5, 22, 23, 2048])
def test_the_nearest_come_first_and_nobody_is_their_own(k, chunk, columns, monkeypatch):
    monkeypatch.setattr("dcdc.engine.neighbours._CHUNK", chunk)
    monkeypatch.setattr("dcdc.engine.neighbours._COLUMNS", columns)
    rows = features(23)
    found = nearest_neighbours(rows, k, CPU)
    assert (found.shape, found.dtype, found.device) == ((23, k), torch.int64, CPU)
    assert found.tolist() == by_sorting(rows, k)


@pytest.mark.parametrize("n_columns", [31, 64, 200, 333])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_the_largest_lie_in_the_groups_with_the_largest(n_columns, k):
    values = torch.randn(17, n_columns, generator=torch.Generator().manual_seed(k))
    values[:, ::5] = -torch.inf  # those that must not be taken
    found, places = neighbours._largest(values, k)
    expected = values.topk(k, dim=1)
    assert torch.equal(found, expected.values)
    assert torch.equal(places, expected.indices)


def test_candidates_that_were_ranked_roughly_are_ranked_anew(monkeypatch):
    monkeypatch.setattr("dcdc.engine.neighbours._CHUNK", 40)
    rows = torch.nn.functional.normalize(torch.from_numpy(features(90)), dim=1)
    exact = rows[40:80] @ rows.T
    exact[torch.arange(40), torch.arange(40, 80)] = -torch.inf
    expected = exact.topk(5, dim=1).indices
    rough = exact + 0.05 * torch.randn(exact.shape, generator=torch.Generator().manual_seed(1))
    roughly, candidates = rough.topk(60, dim=1)
    assert not torch.equal(candidates[:, :5], expected)
    assert torch.equal(
        neighbours._nearest_of_candidates(rows, 40, 5, roughly, candidates), expected
    )


@pytest.mark.parametrize("n_answered", [23, 15])
@pytest.mark.parametrize("columns", [5, 22, 2048])
def test_the_way_of_a_gpu_finds_the_same(n_answered, columns, monkeypatch):
    """All of it but its tensor cores, with fewer others than candidates."""
    monkeypatch.setattr("dcdc.engine.neighbours._CHUNK", 7)
    monkeypatch.setattr("dcdc.engine.neighbours._COLUMNS", columns)
    monkeypatch.setattr("dcdc.engine.neighbours._GROUP", 2)
    rows = torch.nn.functional.normalize(torch.from_numpy(features(23)), dim=1)
    for start in range(0, 23, 7):
        some = neighbours._best_of_chunk(rows, start, 3 + 16, n_answered, neighbours._largest)
        found = neighbours._nearest_of_candidates(rows, start, 3, *some)
        expected = neighbours._nearest_of_chunk(rows, start, 3, n_answered)
        assert torch.equal(found, expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_finds_those_of_a_cpu(monkeypatch):
    monkeypatch.setattr("dcdc.engine.neighbours._COLUMNS", 3000)
    rows = features(7000, 64)
    found = nearest_neighbours(rows, 10, torch.device("cuda"))
    expected = nearest_neighbours(rows, 10, CPU)
    same = (found.sort(1).values == expected.sort(1).values).float().mean()
    assert same > 0.9999  # but for two that are as near as the last digit


def test_length_does_not_count():
    rows = features(12)
    scaled = rows * np.linspace(0.01, 100, 12, dtype=np.float32)[:, None]
    assert torch.equal(nearest_neighbours(rows, 4, CPU), nearest_neighbours(scaled, 4, CPU))


def test_a_duplicate_is_the_nearest_neighbour_but_never_the_image_itself(monkeypatch):
    monkeypatch.setattr("dcdc.engine.neighbours._CHUNK", 4)
    rows = np.concatenate([features(5), features(5)])
    found = nearest_neighbours(rows, 2, CPU)
    assert found[:, 0].tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    all_alike = nearest_neighbours(np.ones((6, 3), np.float32), 5, CPU)
    assert [sorted(row) for row in all_alike.tolist()] == [
        [other for other in range(6) if other != image] for image in range(6)
    ]


def test_features_of_zero_are_no_trouble():
    rows = features(6)
    rows[2] = 0
    found = nearest_neighbours(rows, 5, CPU)
    assert all(len(set(row)) == 5 and i not in row for i, row in enumerate(found.tolist()))


@pytest.mark.parametrize("k", [0, -1, 5, 6])
def test_more_neighbours_than_others_are_refused(k):
    with pytest.raises(ValueError, match=f"5 images do not have {k} neighbours each"):
        nearest_neighbours(features(5), k, CPU)


def test_a_partner_is_one_neighbour_of_each_image_of_a_batch():
    nearest = nearest_neighbours(features(20), 3, CPU)
    batches = torch.randperm(20, generator=torch.Generator().manual_seed(1)).view(4, 5)
    drawn: dict[int, set[int]] = {image: set() for image in range(20)}
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        partners = choose_partners(batches, nearest, generator)
        assert partners.shape == (4, 5)
        for image, partner in zip(
            batches.flatten().tolist(), partners.flatten().tolist(), strict=True
        ):
            drawn[image].add(partner)
    assert drawn == {image: set(row) for image, row in enumerate(nearest.tolist())}


def test_partners_are_drawn_image_by_image_and_follow_from_the_generator():
    nearest = nearest_neighbours(features(40), 2, CPU)
    batches = torch.arange(40).view(1, 40)
    draw = lambda seed: choose_partners(  # noqa: E731
        batches, nearest, torch.Generator().manual_seed(seed)
    )
    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
    is_nearest = draw(3)[0] == nearest[:, 0]
    assert 5 < is_nearest.sum() < 35


@pytest.mark.parametrize("chunk", [4, 6, 2048])  # cut among the answered, at their end, not at all
@pytest.mark.parametrize("columns", [4, 6, 2048])
def test_answered_images_have_theirs_among_themselves_and_extra_ones_among_all(
    chunk, columns, monkeypatch
):
    monkeypatch.setattr("dcdc.engine.neighbours._CHUNK", chunk)
    monkeypatch.setattr("dcdc.engine.neighbours._COLUMNS", columns)
    rows = features(15)
    found = nearest_neighbours(rows, 3, CPU, n_answered=6).tolist()
    assert found[:6] == by_sorting(rows[:6], 3)
    assert found[6:] == by_sorting(rows, 3)[6:]
    assert any(neighbour >= 6 for row in found[6:] for neighbour in row)
    with pytest.raises(ValueError, match="6 images do not have 6 neighbours each"):
        nearest_neighbours(rows, 6, CPU, n_answered=6)


class Answering:
    """A model whose features are the rows themselves."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.device, self.processes = rows, CPU, ALONE

    def features_of(self, _store, some: np.ndarray) -> np.ndarray:
        return self.rows[some]


class Counted:
    def __init__(self, n: int) -> None:
        self.n_answered = n

    def __len__(self) -> int:
        return self.n_answered


def test_of_many_images_the_nearest_are_looked_for_among_candidates(monkeypatch):
    """As a slow search among the same candidates finds them; nobody is their own neighbour."""
    monkeypatch.setattr(neighbours, "MOST_CANDIDATES", {"cpu": 30})
    monkeypatch.setattr(neighbours, "_CHUNK", 16)
    monkeypatch.setattr(neighbours, "_FEATURES_AT_ONCE", 48)
    rows = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    found = find_neighbours(Answering(rows), Counted(100), 3)
    candidates = np.unique(np.linspace(0, 99, 30).astype(np.int64))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for row in range(100):
        others = [number for number in candidates.tolist() if number != row]
        nearest = sorted(others, key=lambda other: -float(unit[row] @ unit[other]))[:3]
        assert found[row].tolist() == nearest

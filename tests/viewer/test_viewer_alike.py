"""What features tell of images: of a few, and of so many that they are read a few at a time."""

import json

import numpy as np
import pytest
from viewer_runs import write_run

from dcdc.viewer import open_run
from dcdc.viewer.likeness import Duplicates
from dcdc.viewer.oddity import groups_within, look_at_all, look_for_oddity
from dcdc.viewer.splitting import silhouette, suggest_parts
from dcdc.viewer.told import overview


def blobs(n_each, n_blobs, n_features=20, seed=0):
    random = np.random.default_rng(seed)
    centres = 4 * random.normal(size=(n_blobs, n_features))
    features = np.repeat(centres, n_each, axis=0) + random.normal(
        size=(n_each * n_blobs, n_features)
    )
    return features.astype(np.float32), np.repeat(np.arange(n_blobs), n_each)


def by_blocks(features, n_at_once=64):
    return lambda: (features[at : at + n_at_once] for at in range(0, len(features), n_at_once))


def test_groups_by_a_plain_loop():
    places = np.random.default_rng(0).normal(size=(200, 40)).astype(np.float32)
    places[[5, 90, 150]] = places[17] + 0.01 * np.arange(3)[:, None]
    found = groups_within(1.0, places)
    near = {
        (i, j)
        for i in range(200)
        for j in range(i + 1, 200)
        if np.linalg.norm(places[i] - places[j]) < 1
    }
    assert {(5, 17), (17, 90)} <= near
    assert [group.tolist() for group in found] == [[5, 17, 90, 150]]


def test_ten_thousand_equal_images_are_one_group_in_little_memory():
    places = np.zeros((10_000, 8), np.float32)
    places[::1000] += np.arange(10, dtype=np.float32)[:, None] * 50 + 50
    (group,) = groups_within(0.5, places)
    assert len(group) == 9_990


def test_all_images_are_told_by_a_sample_as_by_themselves():
    features, _ = blobs(200, 3)
    features[50] = features[400] + 1e-4
    features[77] = 30
    sample = np.arange(0, 600, 2)
    likeness, oddity = look_at_all(600, sample, features[sample], by_blocks(features))
    alone = look_for_oddity(features)
    assert [group.tolist() for group in oddity.near_duplicates] == [[50, 400]]
    assert [group.tolist() for group in alone.near_duplicates] == [[50, 400]]
    assert oddity.scores.argmax() == alone.scores.argmax() == 77
    assert np.corrcoef(oddity.scores, alone.scores)[0, 1] > 0.7
    exact = np.argsort(-features @ features[10] / np.linalg.norm(features, axis=1))[1:6]
    assert [row for row, _ in likeness.nearest(10, 5)] == exact.tolist()


@pytest.fixture
def large_run(tmp_path):
    """Of which the sample has every third image, and all features are kept beside it."""
    features, own = blobs(40, 3, seed=1)
    features[7] = features[100]
    names = [f"{row:03d}.jpg" for row in range(120)]
    run = write_run(tmp_path / "run", names, own, features=features, sample_rows=range(0, 120, 3))
    run.write_features(features.astype(np.float16))
    return run


def surveyed(run):
    found = open_run(run)
    assert overview(found)["n_with_features"] == 40  # at once
    found.survey.start()
    assert found.survey.done.wait(60)
    return found


def test_features_of_all_are_taken_once_they_are_read(large_run):
    found = surveyed(large_run)
    assert overview(found)["n_with_features"] == 120
    assert len(found.nearest(1)) == 24
    assert [group.tolist() for group in found.duplicates.near] == [[7, 100]]
    assert not np.isnan(found.odd).any()


def test_damaged_features_leave_those_of_the_sample(large_run):
    content = bytearray(large_run.features_file.read_bytes())
    content[len(content) // 2] ^= 1
    large_run.features_file.write_bytes(content)
    found = surveyed(large_run)
    assert overview(found)["n_with_features"] == 40
    assert "features.npz" in found.notes[-1]


def test_a_group_is_shown_once_and_what_is_done_to_it_is_done_to_all():
    clusters = np.array([0, 0, 1, 0, 0, 1])
    found = Duplicates(6, [np.array([0, 3])], [np.array([3, 4, 2])])
    assert found.once(np.array([5, 4, 3, 0, 1, 2])).tolist() == [5, 4, 1]
    assert found.counted(clusters).tolist() == [3, 1, 1, 3, 3, 1]
    assert found.with_all([4], clusters) == [0, 3, 4]  # image 2 lies in another cluster
    assert found.with_all([2, 1], clusters) == [1, 2]


def test_copies_alone_are_no_near_duplicates():
    groups = [np.array([0, 1]), np.array([2, 3, 4])]
    found = Duplicates(5, [np.array([0, 1]), np.array([2, 3])], groups)
    assert [group.tolist() for group in found.near] == [[2, 3, 4]]


@pytest.mark.parametrize("n_blobs", [2, 3, 4])
def test_parts_are_what_the_features_hold(n_blobs):
    features, own = blobs(60, n_blobs)
    found = suggest_parts(features)
    assert found.n_suggested == n_blobs
    assert sorted(tuple(np.unique(own[part])) for part in found.members) == [
        (each,) for each in range(n_blobs)
    ]


def test_one_part_more_parts_one_of_those_before():
    features, _ = blobs(50, 3, seed=4)
    few, more = (suggest_parts(features, n).members for n in (2, 3))
    assert len(more) == 3
    assert all(any(set(part) <= set(whole) for whole in few) for part in more)


def test_equal_images_have_no_parts():
    found = suggest_parts(np.ones((5, 4), np.float32), 3)
    assert sum(map(len, found.members)) == 5


def test_silhouette_by_a_plain_loop():
    random = np.random.default_rng(0)
    points, parts = random.normal(size=(30, 3)), random.integers(0, 3, 30)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    values = []
    for i in range(30):
        means = {
            part: np.mean([apart[i, j] for j in range(30) if parts[j] == part and j != i])
            for part in range(3)
        }
        inside = means.pop(parts[i])
        outside = min(means.values())
        values.append((outside - inside) / max(inside, outside))
    assert silhouette(apart, parts) == pytest.approx(np.mean(values))


def test_parts_of_a_cluster_by_the_server(serve, tmp_path):
    features, own = blobs(30, 3, seed=2)
    names = [f"{row:02d}.jpg" for row in range(90)]
    clusters = np.where(own == 2, 1, 0)
    run = write_run(tmp_path / "run", names, clusters, features=features)
    client = serve(run)
    found = json.loads(client.ask("/parts?cluster=0&n=0").content)
    assert (found["n_suggested"], found["n_left"]) == (2, 0)
    assert sorted(map(sorted, found["parts"])) == [list(range(30)), list(range(30, 60))]
    assert found["parts"][0] != sorted(found["parts"][0])  # at random
    assert len(json.loads(client.ask("/parts?cluster=0&n=5").content)["parts"]) == 5
    for wrong in ("cluster=0&n=99", "cluster=x&n=2", "n=2", "cluster=0"):
        assert client.ask(f"/parts?{wrong}").status == 404
    refused = client.ask("/parts?cluster=2&n=0")
    assert refused.status == 400
    assert b"fewer than 4 images" in refused.content

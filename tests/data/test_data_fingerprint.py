import os
from dataclasses import replace

import numpy as np
import pytest

from dcdc.data import fingerprint as module
from dcdc.data import from_arrays, from_vectors
from dcdc.data.fingerprint import files_fingerprint, set_fingerprint


def stats(path, **changes):
    content, time = changes.get("content", b"abc"), changes.get("time", 10**18)
    path.write_bytes(content)
    os.utime(path, ns=(time, time))
    return path.stat()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"content": b"abcd"}, ("a", "b")),
        ({"time": 10**18 + 1}, ("a", "b")),
        ({}, ("a", "c")),
        ({}, ("b", "a")),
        ({}, ("a",)),
        ({}, ("a", "b", "c")),
    ],
)
def test_a_change_of_size_time_name_order_or_number_shows(tmp_path, changes, names):
    def fingerprint(stat, names):
        return files_fingerprint(tmp_path, [(name, stat) for name in names])

    same = stats(tmp_path / "x")
    before = fingerprint(same, ("a", "b"))
    assert fingerprint(stats(tmp_path / "x"), ("a", "b")) == before
    changed = fingerprint(stats(tmp_path / "x", **changes), names)
    assert changed != before
    assert len(changed) == 64


def test_the_root_is_resolved_and_absence_counts(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = [("a", stats(tmp_path / "a"))]
    assert files_fingerprint(tmp_path / "link", found) == files_fingerprint(
        tmp_path / "real", found
    )
    assert files_fingerprint(tmp_path, found) != files_fingerprint(tmp_path / "real", found)
    absent = files_fingerprint(tmp_path, [("a", None)])
    assert absent not in (files_fingerprint(tmp_path, found), files_fingerprint(tmp_path, []))


def differing(one, other) -> set[str]:
    left, right = set_fingerprint(one), set_fingerprint(other)
    return {what for what in {**left, **right} if left.get(what) != right.get(what)}


def test_a_set_is_known_by_its_parts(tiny_set):
    assert differing(tiny_set, tiny_set) == set()
    pixels = tiny_set.images.copy()
    pixels[-1, -1, -1, -1] ^= 1
    assert differing(tiny_set, replace(tiny_set, images=pixels)) == {"pixels"}
    assert differing(tiny_set, replace(tiny_set, extra=pixels)) == {"pixels of extra images"}
    assert differing(tiny_set, replace(tiny_set, names=tiny_set.names[::-1])) == {"names"}
    assert differing(tiny_set, replace(tiny_set, targets=None, class_names=())) == {"classes"}
    assert differing(tiny_set, replace(tiny_set, class_names=("a", "b", "c"))) == {"classes"}
    assert differing(tiny_set, from_arrays(tiny_set.images, tiny_set.targets)) == set()


def test_feature_vectors_are_too():
    vectors = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    plain, other = from_vectors(vectors), from_vectors(vectors * 2)
    assert differing(plain, other) == {"feature vectors"}
    assert differing(plain, replace(plain, copies=vectors)) == {"feature vectors of copies"}


def test_of_a_large_set_rows_that_are_spread_over_it(tiny_set, monkeypatch):
    monkeypatch.setattr(module, "MOST_HASHED", tiny_set.images.nbytes // 4)
    seen = [
        bool(differing(tiny_set, replace(tiny_set, images=changed)))
        for row in range(48)
        if (changed := tiny_set.images.copy()) is not None
        and not changed[row].fill(tiny_set.images[row].max() // 3)
    ]
    assert seen == [row % 4 == 0 for row in range(48)]

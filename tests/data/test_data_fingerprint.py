import os

import pytest

from dcdc.data.fingerprint import files_fingerprint


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

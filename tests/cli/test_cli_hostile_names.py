"""Names that would steer a terminal or a spreadsheet reach neither."""

import csv
import shutil

import pytest
from PIL import Image

from dcdc.runtime.csv_text import unguarded

EVIL = "=1+1\x1b]0;owned\x07\x1b[2J.png"


@pytest.fixture
def evil_folder(tmp_path):
    folder = tmp_path / "evil"
    folder.mkdir()
    for shade in range(4):
        Image.new("L", (8, 8), 60 * shade).save(folder / f"{shade}.png")
    shutil.copy(folder / "1.png", folder / EVIL)
    (folder / f"torn{EVIL}").write_bytes(b"\x89PNG torn")
    return folder


def test_a_fault_a_note_and_a_table(dcdc, finished, evil_folder, tmp_path):
    code, said, told = dcdc("predict", finished, evil_folder)
    assert code == 2
    assert r"torn=1+1\x1b]0;owned\x07\x1b[2J.png" in told
    assert "\x1b" not in said + told
    out = tmp_path / "out.csv"
    code, said, told = dcdc("predict", finished, evil_folder, "--on-bad", "skip", "--out", out)
    assert code == 0
    assert r"skipped torn=1+1\x1b" in told
    assert "\x1b" not in said + told
    with out.open(newline="", encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert not any(name.startswith("=") for name in names)
    assert sorted(map(unguarded, names)) == sorted([*(f"{at}.png" for at in range(4)), EVIL])
    with (tmp_path / "out.skipped.csv").open(newline="", encoding="utf-8") as file:
        assert [unguarded(row["name"]) for row in csv.DictReader(file)] == [f"torn{EVIL}"]

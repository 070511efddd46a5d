"""Verbs where `os` has no more than on Windows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

OTHER_SYSTEM = Path(__file__).parent / "other_system.py"


@pytest.fixture(scope="module")
def photos(tmp_path_factory, tiny_file):
    folder = tmp_path_factory.mktemp("photos")
    for number, image in enumerate(np.load(tiny_file)["images"]):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="is Windows")
def test_the_verbs_do_without_what_windows_lacks(photos, tiny_flags, tmp_path):
    fit = ["fit", str(photos), *tiny_flags, "--run", "run"]
    predict = ["predict", "run", str(photos), "--out", "out.csv", "--copy-to", "sorted"]
    verbs = [*fit, "then", *fit, "--overwrite", "then", *predict, "then", "report", "run"]
    done = subprocess.run(
        [sys.executable, str(OTHER_SYSTEM), *verbs],
        cwd=tmp_path,
        env=os.environ | {"DCDC_DATA": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out.csv").read_bytes().splitlines()) == 49
    copies = {path.name: path.read_bytes() for path in (tmp_path / "sorted").rglob("*.png")}
    assert copies == {path.name: path.read_bytes() for path in photos.iterdir()}
    assert not [*(tmp_path / "run").rglob("*.partial*"), *tmp_path.glob("run/.dcdc-lock")]

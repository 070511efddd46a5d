"""Wheel and sdist of this checkout, built once."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BUILD = """
import sys
from setuptools import build_meta
out = sys.argv[1]  # builds set arguments of their own
build_meta.build_sdist(out)
build_meta.build_wheel(out)
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder with both. Of a copy: a build leaves its own folders beside the sources."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "CITATION.cff"):
        shutil.copy(ROOT / name, copy)
    for name in ("LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, copy)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    (copy / "tests").mkdir()
    shutil.copy(ROOT / "tests/test_errors.py", copy / "tests")  # which must stay behind
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(out)],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out

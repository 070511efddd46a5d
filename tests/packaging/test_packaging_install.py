"""The wheel in an environment of its own: it needs nothing of the checkout."""

import os
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Programs of an environment that has the wheel; dependencies are those installed here."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    where = {"base": str(folder), "platbase": str(folder)}
    programs = Path(sysconfig.get_path("scripts", "venv", where))
    packages = Path(sysconfig.get_path("purelib", "venv", where))
    (wheel,) = built.glob("*.whl")
    install = ["-m", "pip", "--python", str(programs / "python"), "install"]
    how = ["--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, *install, *how], check=True)
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return programs


def _run(program: Path, *arguments: str, cwd: Path) -> str:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(program), *arguments], cwd=cwd, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_installed_wheel_groups_images(installed, tiny_file, tiny_flags, tmp_path):
    where = _run(
        installed / "python", "-c", "import dcdc; print(dcdc.__file__)", cwd=tmp_path
    ).strip()
    assert Path(where).is_relative_to(installed.parent)
    assert not Path(where).is_relative_to(ROOT)
    assert _run(installed / "dcdc", "--version", cwd=tmp_path).startswith("dcdc 0.")
    said = _run(installed / "dcdc", "fit", str(tiny_file), *tiny_flags, cwd=tmp_path)
    assert "report:     runs/tiny/report.html" in said
    page = (tmp_path / "runs/tiny/report.html").read_text(encoding="utf-8")
    assert "<script" in page  # templates are there

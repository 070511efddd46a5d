"""What a wheel and an sdist hold: all that the package needs, and nothing else."""

import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT / "src").as_posix()
    for path in (ROOT / "src/dcdc").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
KINDS = {".py", ".typed", ".html", ".css", ".js"}


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_a_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    inside = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(inside) == SOURCES
    assert {PurePosixPath(name).suffix for name in inside} <= KINDS
    assert "dcdc/py.typed" in inside
    assert any(name.endswith("/report.js") for name in inside)


def test_an_sdist_holds_what_builds_it_and_no_tests(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = [PurePosixPath(each.name) for each in archive if each.isfile()]
    assert len({each.parts[0] for each in inside}) == 1
    own = {PurePosixPath(*each.parts[1:]).as_posix() for each in inside}
    assert {f"src/{name}" for name in SOURCES} <= own
    beside = {name for name in own if not name.startswith("src/")}
    assert beside - {"setup.cfg"} == {  # which setuptools may add
        *("pyproject.toml", "MANIFEST.in", "PKG-INFO", "constraints.txt"),
        *("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
    }


def test_the_metadata_are_those_of_the_project(metadata, wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["Name"] == "dcdc"
    assert metadata["Version"] == project["version"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("Provides-Extra") == list(project["optional-dependencies"])
    plain = [each for each in metadata.get_all("Requires-Dist") if "extra ==" not in each]
    assert plain == project["dependencies"]
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    names = {PurePosixPath(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    assert b"dcdc = dcdc.cli:main" in wheel.read(names["entry_points.txt"])
    assert wheel.read(names["LICENSE"]) == (ROOT / "LICENSE").read_bytes()

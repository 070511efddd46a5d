"""Names that anyone may add to, in Python or by the entry point of an installed package."""

import sys
from importlib.metadata import entry_points

import pytest

from dcdc.config import PHASES
from dcdc.errors import InputError
from dcdc.losses import LOSSES
from dcdc.methods import METHODS
from dcdc.networks import BACKBONES
from dcdc.registry import Registry


@pytest.fixture
def registry():
    known = {"path": "pathlib:PurePosixPath", "join": "posixpath:join"}
    return Registry("tool", "dcdc.tests.tools", known)


def test_its_own_are_found_by_name(registry):
    from pathlib import PurePosixPath

    assert registry.names() == ["path", "join"]
    assert registry.get("path") is PurePosixPath


def test_its_own_are_imported_when_they_are_asked_for(tmp_path, monkeypatch):
    (tmp_path / "late_tool.py").write_text("tool = object()\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("tool", "dcdc.tests.tools", {"late": "late_tool:tool"})
    assert registry.names() == ["late"]
    assert "late_tool" not in sys.modules
    assert registry.get("late") is registry.get("late")
    assert "late_tool" in sys.modules
    del sys.modules["late_tool"]


def test_one_more_is_registered_and_handed_back(registry):
    entry = object()
    assert registry.register("mine", entry) is entry
    assert registry.get("mine") is entry
    assert registry.names() == ["path", "join", "mine"]
    registry.register("mine", entry)  # once more: a cell of a notebook that runs again


@pytest.mark.parametrize("name", ["path", "mine"])
def test_a_name_that_is_taken_stays_whose_it_is(registry, name):
    registry.register("mine", 1)
    before = registry.get(name)
    with pytest.raises(InputError, match=f"there is a tool {name!r} already: choose another name"):
        registry.register(name, object())
    assert registry.get(name) is before


def test_an_unknown_name_is_answered_with_the_nearest_and_all_of_them(registry):
    registry.register("mine", 1)
    with pytest.raises(InputError) as caught:
        registry.get("pth")
    said = "unknown tool 'pth'; did you mean 'path'? There are: path, join, mine"
    assert str(caught.value) == said
    with pytest.raises(InputError, match=r"^unknown tool 'zzz'"):
        registry.get("zzz")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package beside dcdc, as pip leaves it."""
    (tmp_path / "outside_tools.py").write_text("hammer = ['hammer']\n")
    info = tmp_path / "outside_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-tools\nVersion: 1.0\n")
    points = "[dcdc.tests.tools]\nhammer = outside_tools:hammer\npath = outside_tools:hammer\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    assert entry_points(group="dcdc.tests.tools")


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_its_own_by_an_entry_point(registry):
    assert registry.names() == ["path", "join", "hammer"]
    assert registry.get("hammer") == ["hammer"]
    assert registry.get("path") != ["hammer"]  # the package's own go first
    with pytest.raises(InputError, match="there is a tool 'hammer' already"):
        registry.register("hammer", object())


@pytest.mark.parametrize(
    "known", [PHASES, BACKBONES, LOSSES, METHODS], ids=lambda known: known.what
)
def test_everything_that_the_package_names_is_there(known):
    assert known.group.startswith("dcdc.")
    for name in known.names():
        assert known.get(name) is not None


@pytest.mark.parametrize("kind", PHASES.names())
def test_every_phase_has_the_name_it_is_known_by(kind):
    assert PHASES.get(kind).kind == kind

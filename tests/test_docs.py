"""What the docs show works: Python snippets run, commands, settings, links and files exist."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from dcdc.config import PHASES, with_values
from dcdc.config.keys import type_of_key
from dcdc.config.renamed import GONE, NEW_NAMES
from dcdc.experiments.rows import dotted
from dcdc.methods import METHODS, find_method
from dcdc.prepare.suggestions import suggest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE, DECISIONS = ROOT / "docs/architecture.md", ROOT / "docs/decisions.md"
EXTEND = ROOT / "docs/extend.md"
"""`test_extend.py` runs its snippets, as files: here they would stay registered."""


def fenced(language: str, pages: list[Path] = PAGES) -> list[tuple[str, str]]:
    found = []
    for page in pages:
        pattern = rf"^```{language}\n(.*?)^```"
        blocks = re.findall(pattern, page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [(f"{page.name}-{number}", block) for number, block in enumerate(blocks)]
    return found


PYTHON = fenced("python", [page for page in PAGES if page != EXTEND])
EXTRAS = {"onnxruntime": "onnx", "onnx": "onnx", "huggingface_hub": "hub"}
"""Modules that a snippet may import, and the extras that bring them."""


@pytest.mark.parametrize("snippet", [text for _, text in PYTHON], ids=[name for name, _ in PYTHON])
def test_python_snippets_run(snippet, tmp_path, monkeypatch):
    for module in re.findall(r"^(?:import|from) (\w+)", snippet, flags=re.MULTILINE):
        if module in EXTRAS:
            pytest.importorskip(module, reason=f"pip install 'dcdc[{EXTRAS[module]}]'")
    monkeypatch.chdir(tmp_path)
    # One epoch shows that a snippet works; what it reaches is in docs/results.md.
    monkeypatch.setattr(
        "dcdc.prepare.suggestions.suggest",
        lambda **images: with_values(suggest(**images), {"heads.epochs": 1}),
    )
    exec(compile(snippet, "snippet", "exec"), {"__name__": "snippet"})


def test_the_readme_has_a_python_snippet():
    assert any(name.startswith("README") for name, _ in PYTHON)


def commands() -> list[str]:
    lines = [line for _, block in fenced("sh") for line in block.splitlines()]
    return [line.split("#")[0].strip() for line in lines if line.startswith("dcdc ")]


@pytest.mark.parametrize("command", commands())
def test_commands_have_only_flags_that_exist(command):
    from typer.main import get_command

    from dcdc.cli import app

    verb, *arguments = shlex.split(command)[1:]
    while verb.startswith("--"):  # with its value, before the verb
        assert verb in {option for each in get_command(app).params for option in each.opts}
        _, verb, *arguments = arguments
    known = get_command(app).commands
    if verb == "data":
        known, verb = known[verb].commands, arguments[0]
    assert verb in known
    named = known[verb].params
    options = {option for each in named for option in (*each.opts, *each.secondary_opts)}
    assert {word for word in arguments if word.startswith("--")} <= options


OF_PLUGINS = ("my-net", "sharpen.", "agreement", "mixture.")
"""In settings that the examples of plugins have."""
PLACEHOLDERS = ("section.key", "NAME.KEY")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_commands_exist(page):
    for key, value in re.findall(r"--set[ \n]+([\w.-]+)=([\w.,-]*)", page.read_text()):
        if key in PLACEHOLDERS or key.startswith(OF_PLUGINS) or value.startswith(OF_PLUGINS):
            continue
        method, _, setting = key.partition(".")
        if method not in METHODS.names():
            type_of_key(key)
        elif "." in setting:
            type_of_key(setting)
        else:
            assert setting in find_method(method).settings(), key


SECTIONS = ("data", "network", "augment", "train", "instance", "loss", *PHASES.names())


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "log.md"], ids=lambda page: page.name
)
def test_settings_are_called_by_their_names_of_today(page):
    named = re.findall(r"`([a-z_]+)\.([a-z_]+)(?:=[^`]*)?`", page.read_text())
    for section, name in named:
        if section in SECTIONS:
            type_of_key(f"{section}.{name}")


def test_the_changelog_has_the_new_name_of_every_old_one():
    text = (ROOT / "CHANGELOG.md").read_text()
    for old, new in NEW_NAMES.items():
        assert f"| `{old}` | `{new}`" in text
    for old in GONE:
        assert f"| `{old}` | gone |" in text


def test_the_picture_of_the_layers_is_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(
        each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"
    )
    wanted = [layer.replace("dcdc.", "") for layer in contract["layers"]]
    text = ARCHITECTURE.read_text()
    assert re.findall(r'^    l\d+\["(.*)"\]$', text, flags=re.MULTILINE) == wanted
    arrows = " --> ".join(f"l{number}" for number in range(1, len(wanted) + 1))
    assert f"    {arrows}\n" in text


def test_the_table_of_packages_has_every_one():
    source = ROOT / "src/dcdc"
    packages = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    packages |= {path.name for path in source.glob("*.py") if not path.name.startswith("_")}
    _, _, text = ARCHITECTURE.read_text().partition("## Packages\n")
    table, _, _ = text.partition("\n## ")
    assert set(re.findall(r"^\| `([\w./]+)` \|", table, flags=re.MULTILINE)) == packages


@pytest.mark.parametrize("page", [ARCHITECTURE, DECISIONS], ids=lambda page: page.name)
def test_named_sources_exist(page):
    for name in re.findall(r"[\w/]+\.py\b", page.read_text()):
        assert (ROOT / "src/dcdc" / name).is_file(), name


def test_decisions_are_numbered_and_say_what_why_and_what_it_cost():
    titles = re.split(r"^### ", DECISIONS.read_text(), flags=re.MULTILINE)[1:]
    assert [int(title.partition(".")[0]) for title in titles] == list(range(1, len(titles) + 1))
    for record in titles:
        parts = re.findall(r"^- \*\*(What|Why|Cost)\.\*\* \S", record, flags=re.MULTILINE)
        assert parts == ["What", "Why", "Cost"], record


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_make_targets_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^ *)make ([a-z-]+)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


KEPT = sorted((ROOT / "docs/runs").glob("*/*/metrics.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_the_results_page_quotes_the_runs_that_are_kept(path):
    """Its rows end in the scores and the time that the run's own files have."""
    told = json.loads(path.read_text())
    last = json.loads((path.parent / "history.jsonl").read_text().splitlines()[-1])
    figures = []
    for name in ("acc", "nmi", "ari"):
        assert last[name] == told["scores"][name]
        figures.append(f"**{dotted(told['scores'][name])}**")
    row = f"| {' | '.join(figures)} | **{told['training_seconds']:,.0f} s** |"
    assert row in (ROOT / "docs/results.md").read_text()


def test_runs_are_kept():
    assert len(KEPT) >= 4

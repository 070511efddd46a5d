"""What the docs show works: Python snippets run, commands and links exist."""

import json
import re
import shlex
from pathlib import Path

import pytest

from dcdc.config import with_values
from dcdc.experiments.rows import dotted
from dcdc.presets import suggest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def fenced(language: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        pattern = rf"^```{language}\n(.*?)^```"
        blocks = re.findall(pattern, page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [(f"{page.name}-{number}", block) for number, block in enumerate(blocks)]
    return found


PYTHON = fenced("python")
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
        "dcdc.config_for_images.suggest",
        lambda **images: with_values(suggest(**images), {"train.epochs": 1}),
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
    known = get_command(app).commands
    if verb == "data":
        known, verb = known[verb].commands, arguments[0]
    assert verb in known
    named = known[verb].params
    options = {option for each in named for option in (*each.opts, *each.secondary_opts)}
    assert {word for word in arguments if word.startswith("--")} <= options


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

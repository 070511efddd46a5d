"""What is printed stays within 80 columns, broken between words."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from dcdc.cli import console, experiments
from dcdc.cli.recipe_lines import explained
from dcdc.prepare.resolve import resolve


@pytest.fixture
def narrow(monkeypatch):
    """A terminal of 80 columns, in the place of both outputs: its lines."""
    shown = io.StringIO()
    terminal = Console(file=shown, width=80, force_terminal=True, color_system=None)
    for name in ("out", "err"):
        monkeypatch.setattr(console, name, terminal)
    return lambda: [line.rstrip() for line in shown.getvalue().splitlines()]


def test_settings_and_what_changes_them_fit(narrow, tiny_config, tiny_set):
    pairs = explained(resolve(tiny_config, tiny_set))
    console.note_pairs(pairs)
    lines = narrow()
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    assert sorted(words) == sorted(" ".join(f"{one} {two}" for one, two in pairs).split())


def test_facts_go_on_below_their_column(narrow):
    console.say_fact("citation", "word " * 30)
    lines = narrow()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("citation   word")
    assert all(line.startswith("           word") for line in lines[1:])


def test_a_headline_is_not_broken_at_the_width_of_its_table(narrow):
    grid = Table("a", "b")
    grid.add_row("1", "2")
    title = "photos: 1,200 images of 32x32x3, 10 clusters, all on one line"
    experiments.print_grid(grid, title, [])
    assert narrow()[0] == title

"""Lines on a terminal, and in a pipe."""

import io

import pytest
from rich.console import Console

from dcdc.cli import console

LONG = "report of " + "many words " * 12 + "/a/path/of/one/word" * 6


@pytest.mark.parametrize(("is_terminal", "whole"), [(True, False), (True, True), (False, False)])
def test_only_a_terminal_breaks_lines_and_never_a_word(monkeypatch, is_terminal, whole):
    text = io.StringIO()
    drawn = Console(file=text, width=80, force_terminal=is_terminal, color_system=None)
    monkeypatch.setattr(console, "out", drawn)
    console.say(LONG, whole=whole)
    lines = text.getvalue().rstrip("\n").split("\n")
    assert " ".join(lines).split() == LONG.split()
    if is_terminal and not whole:
        *words, path = lines
        assert len(words) == 2
        assert all(len(line) <= 80 for line in words)
        assert path == LONG.split()[-1]
    else:
        assert lines == [LONG]


def test_pairs_stand_in_two_columns_that_fit(monkeypatch):
    text = io.StringIO()
    drawn = Console(file=text, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(console, "err", drawn)
    pairs = [
        ("backbone small", "--backbone NAME"),
        ("perturbed by " + "crop, " * 20, "--set NAME="),
    ]
    console.note_pairs(pairs)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].index("--backbone NAME") == lines[1].index("--set NAME=")

"""The walk's own eyes: what it reads of a page, draws on a terminal, and takes for a fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from journey.expectations import faults, why_left_out
from journey.pages import Command, commands_of
from journey.terminal import Shown, run, width

ROOT = Path(__file__).parents[2]
PAGE = """
```sh
dcdc fit photos/ --clusters 12    # finds clusters
# only a word
dcdc fit cifar10 \\
    --preset cifar10-paper
```

```python
print("no command")
```

```sh
echo 'a'
```
"""
GOOD = (
    "\repoch 3/8 ━━━━━━╸━━━━━ 12/64 0:00:03 loss 1.2\r\n"
    "8 of 12 clusters in use, sizes 3 to 9\r\nreport:     runs/photos/report.html\r\n"
)


def test_commands_are_the_lines_of_shell_blocks():
    found = commands_of(Path("README.md"), PAGE)
    assert found == [
        Command("README.md", 3, "dcdc fit photos/ --clusters 12"),
        Command("README.md", 6, "dcdc fit cifar10 --preset cifar10-paper"),
        Command("README.md", 14, "echo 'a'"),
    ]
    assert why_left_out(found[0].text) is None
    assert why_left_out(found[1].text) == "needs the files of a benchmark"


def test_the_readme_has_commands_to_walk():
    texts = [command.text for command in commands_of(ROOT / "README.md")]
    assert any(text.startswith("dcdc fit photos/") and not why_left_out(text) for text in texts)


def test_a_command_runs_in_eighty_columns_and_keys_reach_it(tmp_path):
    script = """
import shutil, sys, time
try:
    print(shutil.get_terminal_size().columns)
    print("\x1b[31mready\x1b[0m", sys.stdin.isatty(), flush=True)
    while True:  # a key that comes just before input() begins can be lost to it
        time.sleep(0.01)
except KeyboardInterrupt:
    sys.exit(130)
"""
    (tmp_path / "script.py").write_text(script)
    shown = run(
        f"{sys.executable} script.py",
        tmp_path,
        {"PATH": os.environ["PATH"]},
        limit=60,
        press=lambda drawn: b"\x03" if "ready" in drawn else b"",
    )
    assert shown.code == 130
    assert shown.lines[:2] == ["80", "ready True"]


def test_a_command_that_does_not_end_is_ended(tmp_path):
    shown = run("sleep 60", tmp_path, {"PATH": os.environ["PATH"]}, limit=0.3)
    assert not shown.is_over
    assert faults("sleep 60", shown, tmp_path) == [f"did not end within {shown.seconds:.0f} s"]


@pytest.fixture
def page(tmp_path):
    (tmp_path / "runs/photos").mkdir(parents=True)
    (tmp_path / "runs/photos/report.html").write_text('<img src="data:image/png;base64,">')
    return tmp_path


@pytest.mark.parametrize(
    ("drawn", "code", "fault"),
    [
        (GOOD, 0, None),
        (GOOD, 2, "exit code 2"),
        (GOOD + "Traceback (most recent call last):", 0, "a traceback"),
        (GOOD + "word " * 17, 0, "85 columns"),
        (GOOD.replace("━", " ").replace("╸", " "), 0, "no line with a bar"),
        (GOOD.replace("12/64", ""), 0, "no line with a bar"),
        (GOOD.replace("0:00:03", ""), 0, "no line with a bar"),
        (f"{GOOD}epoch… loss 1.2", 0, "no line with a bar"),
        (GOOD.replace("epoch 3/8", "reading"), 0, "no line with a bar"),
        ("no classes to score against\n" + GOOD, 0, None),
        (GOOD.replace("8 of 12", ""), 0, "how many clusters"),
        (GOOD.replace("report.html", "other.html"), 0, "there is no runs/photos/other.html"),
        ("10 classes to score against\n" + GOOD, 0, "no ACC"),
        ("10 classes to score against\nDCDC  0.957  0.928  0.911\n" + GOOD, 0, None),
    ],
)
def test_what_a_training_must_show(page, drawn, code, fault):
    found = faults("dcdc fit photos/ --clusters 12", Shown(code, drawn, 1.0), page)
    assert [fault in each for each in found] == ([] if fault is None else [True])


def test_copies_are_counted(tmp_path):
    command = "dcdc predict runs/photos photos/ --out out.csv --copy-to sorted/"
    for name in ("photos/a.jpg", "photos/b.jpg", "sorted/cluster-0/a.jpg", "out.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert faults(command, Shown(0, "", 1.0), tmp_path) == ["1 copies of 2 photos"]
    (tmp_path / "sorted/cluster-0/b.jpg").touch()
    assert not faults(command, Shown(0, "", 1.0), tmp_path)


def test_an_export_is_of_the_photos_of_its_run(tmp_path):
    command = "dcdc export runs/photos --copy-to sorted/ --table photos.csv"
    assert why_left_out(command) is None
    assert why_left_out("dcdc export runs/photos") is not None
    for name in ("photos/a.jpg", "sorted/cluster-0/a.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert faults(command, Shown(0, "", 1.0), tmp_path) == ["--table made nothing"]
    (tmp_path / "photos.csv").touch()
    assert not faults(command, Shown(0, "", 1.0), tmp_path)


def test_columns_are_those_of_a_terminal():
    assert width("abc") == 3
    assert width("日本") == 4
    assert width("e\N{COMBINING ACUTE ACCENT}") == 1


@pytest.mark.slow
def test_the_readme_does_what_it_says():
    """With the packages that are installed here; by itself the walk installs its own, and walks the
    tutorials too."""
    walk = ROOT / "tests/journey/run.py"
    done = subprocess.run(
        [sys.executable, str(walk), "--environment", sys.prefix, "README.md"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout

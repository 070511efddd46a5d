"""Walks README and tutorials as a person would: a fresh environment, a terminal of 80 columns.

    python tests/journey/run.py                        # installs into an environment of its own
    python tests/journey/run.py --environment .venv    # one that is there

Every command of their blocks ```sh is typed as it stands, in a fresh copy of the checkout; what is
left out, and why, stands in expectations.py. Ends with 1 where a command does not do what is
expected.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from journey.belongings import bring
from journey.expectations import faults, why_left_out
from journey.pages import Command, commands_of
from journey.terminal import Shown, run

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/photos.md", "docs/research.md")
MINUTES_TO_INSTALL, MINUTES_OF_A_COMMAND = 30, 15
_NOT_COPIED = ("tests/", "docs/runs/", "docs/figures/", "benchmarks/")


@dataclass(frozen=True)
class Step:
    command: Command
    shown: Shown | None
    """None where it was left out."""
    faults: list[str]
    why: str = ""

    def __str__(self) -> str:
        state = f"left out: {self.why}" if self.shown is None else "; ".join(self.faults) or "good"
        seconds = "" if self.shown is None else f"{self.shown.seconds:.1f} s"
        where = f"{self.command.page}:{self.command.line}"
        return f"{where:<16} {seconds:>8}  {self.command.text}\n{'':26} {state}"


def walk(page: Path, folder: Path, environment: dict[str, str]) -> Iterator[Step]:
    """A command that stands on the page twice is typed once."""
    typed: set[str] = set()
    for command in commands_of(page):
        if command.text in typed:
            continue
        typed.add(command.text)
        if why := why_left_out(command.text):
            yield Step(command, None, [], why)
            continue
        limit = 60 * MINUTES_OF_A_COMMAND
        shown = run(command.text, folder, environment, limit=limit, press=leave)
        yield Step(command, shown, faults(command.text, shown, folder))


def leave(drawn: str) -> bytes:
    """A page that is served until somebody has seen enough."""
    return b"\x03" if "Ctrl-C ends it" in drawn else b""


def stop_and_go_on(folder: Path, environment: dict[str, str]) -> Iterator[Step]:
    """Ctrl-C when the bar is there, then what the last line says."""
    first = Command("Ctrl-C", 1, "dcdc fit photos/ --clusters 12 --run runs/stopped")
    pressed = False

    def press(drawn: str) -> bytes:
        nonlocal pressed
        if pressed or not re.search(r"epoch \d+/\d+ [━╸╺]+ +[1-9]", drawn):
            return b""
        pressed = True
        return b"\x03"

    limit = 60 * MINUTES_OF_A_COMMAND
    shown = run(first.text, folder, environment, limit=limit, press=press)
    said = re.search(r"go on with: (dcdc .*--resume)", " ".join(shown.text.split()))
    found = []
    if shown.code != 130 or said is None:
        found.append(f"exit code {shown.code} after Ctrl-C: {shown.lines[-1]}")
    yield Step(first, shown, found)
    if said is not None:
        second = Command("Ctrl-C", 2, said[1])
        shown = run(second.text, folder, environment, limit=limit)
        yield Step(second, shown, faults(second.text, shown, folder))


def checkout(folder: Path) -> Path:
    """A copy of what is in the checkout, but for tests and records."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if not name.startswith(_NOT_COPIED) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def surroundings(home: Path, environment: Path, *more: str) -> dict[str, str]:
    """A person's shell with the environment active, and nothing else of ours but `more`."""
    kept = ("LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "http_proxy", "https_proxy", *more)
    own = {name: value for name, value in os.environ.items() if name in kept or name[:4] == "PIP_"}
    return own | {
        "HOME": str(home),
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(environment),
        "TERM": "xterm-256color",
        "BROWSER": "true",  # which opens nothing
        "DCDC_DATA": str(home / "cache"),
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def install(home: Path) -> tuple[Path, Step]:
    """By the first line of the README that does so, in a fresh environment."""
    environment = home / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    known = [each for each in commands_of(ROOT / PAGES[0]) if each.text.startswith("pip install")]
    command = known[0] if known else Command(PAGES[0], 0, "pip install .")
    folder = checkout(home / "to-install")
    around = surroundings(home, environment)
    shown = run(command.text, folder, around, limit=60 * MINUTES_TO_INSTALL)
    return environment, Step(command, shown, faults(command.text, shown, folder))


def journey(environment: Path | None, pages: list[str], *, keep: bool) -> int:
    home = Path(tempfile.mkdtemp(prefix="dcdc-journey-"))
    steps: list[Step] = []

    def tell(step: Step) -> None:
        steps.append(step)
        print(step, flush=True)
        if step.faults and step.shown is not None:
            print("\n".join(f"{'':28}| {line}" for line in step.shown.lines[-12:]), flush=True)

    try:
        if environment is None:
            environment, step = install(home)
            tell(step)
            if step.faults:
                return 1
            around = surroundings(home, environment)
        else:
            around = surroundings(home, environment, "PYTHONPATH")
        folder = home
        for name in pages:
            folder = checkout(home / Path(name).stem)
            bring(folder)
            for step in walk(ROOT / name, folder, around):
                tell(step)
        for step in stop_and_go_on(folder, around):
            tell(step)
    finally:
        if keep:
            print(f"kept: {home}")
        else:
            shutil.rmtree(home, ignore_errors=True)
    n_typed = sum(step.shown is not None for step in steps)
    n_bad = sum(bool(step.faults) for step in steps)
    print(f"{n_typed} commands typed, {len(steps) - n_typed} left out, {n_bad} not as expected")
    return 1 if n_bad else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--environment", type=Path, help="one that has dcdc; default: a fresh one")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the walk")
    parser.add_argument("pages", nargs="*", help="default: README and tutorials")
    given = parser.parse_args()
    pages = given.pages or [name for name in PAGES if (ROOT / name).exists()]
    environment = None if given.environment is None else given.environment.resolve()
    sys.exit(journey(environment, pages, keep=given.keep))


if __name__ == "__main__":
    main()

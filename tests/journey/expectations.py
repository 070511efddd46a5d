"""Which commands a walk leaves out, and what the others must have shown and made."""

import re
import shlex
from pathlib import Path

from journey.terminal import Shown

LEFT_OUT = {
    r"^(pipx|uv) ": "another way to install",
    r"^pip ": "the environment was made by it",
    r"^make ": "run by .ci/run",
    r"\b(cifar|stl10|imagenet|tiny-imagenet|reproduce)": "needs the files of a benchmark",
    r"--backbone (timm|hf|torchvision):": "needs a download",
    r"^torchrun |--tensorboard|^dcdc export (?!.*--table)": "needs more than the first install",
    r"^dcdc compare |--preset \S+-paper": "takes long",
    r"\b(images\.parquet|labelled\.npz|runs/images|edits\.json)\b": "has files nobody brought",
}
BAR = re.compile(r"[━╸╺].*\b[\d,]+/[\d,]+\b.*(\d:\d\d:\d\d|-:--:--)")
_REPORT = re.compile(r"report:\s+(\S+)")


def why_left_out(command: str) -> str | None:
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, command)), None)


def faults(command: str, shown: Shown, folder: Path) -> list[str]:
    """What is not as the page promises; empty where all is well."""
    found = []
    if not shown.is_over:
        found.append(f"did not end within {shown.seconds:.0f} s")
    elif shown.code:
        found.append(f"ended with exit code {shown.code}: {shown.lines[-1] if shown.lines else ''}")
    if "Traceback" in shown.text:
        found.append("a traceback")
    if command.startswith("pip "):
        return found
    if not _prints_rows(command):
        found += [f"{len(line)} columns: {line[:60]}..." for line in dict.fromkeys(shown.too_long)]
    if not found and command.startswith("dcdc "):
        found += _faults_of(shlex.split(command)[1:], shown, folder)
    return found


def _prints_rows(command: str) -> bool:
    """Of CSV, for programs: they are as wide as they are."""
    return command.startswith("dcdc predict ") and "--out" not in command


def _faults_of(words: list[str], shown: Shown, folder: Path) -> list[str]:
    verb = words[0]
    if verb == "fit" and "--resume" not in words:
        return [*_of_training(shown), *_of_page(shown, folder)]
    if verb in ("predict", "export"):
        return _of_files(words, folder)
    return [] if shown.lines else ["said nothing"]


def _of_training(shown: Shown) -> list[str]:
    found = []
    drawn = [line for line in shown.lines if re.match(r"(\w+ )?epoch(?!s)", line)]
    without = [line for line in drawn if not BAR.search(line)]
    if not drawn or without:
        found.append(f"no line with a bar, a count and the time left: {' '.join(without[:1])}")
    scored = re.search(r"\d classes to score", shown.text)
    if scored and not re.search(r"^DCDC\s+0?\.\d{3}\s", shown.text.replace("\r", ""), re.MULTILINE):
        found.append("no ACC, NMI and ARI")
    if not re.search(r"\d+ of \d+\s+clusters\s+in\s+use", shown.text):
        found.append("does not say how many clusters are in use")
    return found


def _of_page(shown: Shown, folder: Path) -> list[str]:
    told = _REPORT.search(shown.text)
    if told is None:
        return ["does not say where the report is"]
    page = folder / told[1]
    if not page.is_file():
        return [f"there is no {told[1]}"]
    return [] if b"data:image" in page.read_bytes() else [f"{told[1]} shows no image"]


def _of_files(words: list[str], folder: Path) -> list[str]:
    """An export is of the run's own photos, a prediction of those that are named."""
    found = [
        f"{option} made nothing"
        for option in ("--out", "--table", "--copy-to")
        if option in words and not (folder / words[words.index(option) + 1]).exists()
    ]
    if "--copy-to" in words:
        copies = [*(folder / words[words.index("--copy-to") + 1]).glob("*/*")]
        source = words[2] if words[0] == "predict" else Path(words[1]).name
        given = [*(folder / source).rglob("*.jpg")]
        if len(copies) != len(given):
            found.append(f"{len(copies)} copies of {len(given)} photos")
    return found

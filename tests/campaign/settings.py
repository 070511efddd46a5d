"""Every setting by every kind of wrong value, and every option of every verb by wrong texts."""

import os
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import typer.main

from campaign.case import STOPPED, Case
from campaign.ground import FLAGS, IMAGE_FLAGS, Ground, ground
from campaign.process import run_verb

_VALUES = {
    "a text": "nonsense",
    "none": "none",
    "-1": "-1",
    "0": "0",
    "NaN": "nan",
    "1e30": "1e30",
    "100000": "100000",
    "10^10": "10000000000",
    "5,000 digits": "9" * 5000,
    "a list of zero": "[0]",
    "NaN in a list": "[nan,nan,nan]",
    "minus in a list": "[-1.0,-1.0,-1.0]",
    "nested lists": "[" * 200 + "]" * 200,
}
_ANYTHING = tuple("/".join("*" * depth) for depth in range(1, 6))
_PHASES = ("contrast", "byol", "heads", "self_label")
_FAILED = 1
_SECONDS = 1.5


def cases() -> Iterator[Case]:
    made = ground()
    for key in _keys():
        for words, value in _VALUES.items():
            yield Case(
                name=f"{key} {words}",
                prepare=partial(_lay, made, _fit(made, key, value)),
                names=(key, key.rpartition(".")[2], _flag(key), "memory"),
                makes=_ANYTHING,
                codes=(0, 2, STOPPED, _FAILED),
                cache=made.cache,
            )


def _keys() -> list[str]:
    from dcdc.config import RunConfig, flat, with_values

    config = with_values(RunConfig(), {"phases": list(_PHASES)})
    return [key for key in flat(config) if key != "data.source"]


def _fit(made: Ground, key: str, value: str) -> list[object]:
    """A run that has the phase, on images where the setting is of images."""
    section = key.partition(".")[0]
    flags = [*FLAGS, *IMAGE_FLAGS]
    if section in _PHASES and section != "heads":
        kinds = ("heads", section) if section == "self_label" else (section, "heads")
        flags += ["--set", f"phases={','.join(kinds)}", "--set", f"{section}.epochs=1"]
        flags += ["--set", f"{section}.batch_size=6"]
    return ["fit", made.photos, "--run", "run", *flags, "--set", f"{key}={value}"]


def _flag(key: str) -> str:
    """As the command line spells it, where it has an option of its own."""
    return "--" + key.rpartition(".")[2].removeprefix("n_").replace("_", "-")


def _lay(made: Ground, arguments: Sequence[object], folder: Path):  # noqa: ARG001
    return partial(stopped_after_a_while, arguments)


def stopped_after_a_while(arguments: Sequence[object]) -> None:
    """As Ctrl-C stops it: a value that only makes it long is no wrong value."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    run_verb(arguments)


_TEXTS = {
    "empty": "",
    "nonsense": "nonsense",
    "-1": "-1",
    "5,000 digits": "9" * 5000,
    "5,000 letters": "x" * 5000,
    "nobody's home": "~nosuchuser/x",
    "not UTF-8": "\udcff\udcfe",
    "an escape": "\x1b[31mred",
    "a path below a file": "vectors.npz/x",
}
_GIVEN: dict[str, list[str]] = {
    "fit": ["vectors.npz", "--clusters", "3", "--no-report", "--quiet", "--epochs", "1"],
    "predict": ["RUN", "vectors.npz", "--out", "out.csv", "--quiet"],
    "evaluate": ["RUN", "vectors.npz", "--quiet"],
    "report": ["RUN", "--quiet"],
    "export": ["RUN", "--format", "torch"],
    "compare": ["vectors.npz", "--methods", "k-means", "--quiet", "--minutes", "0.0001"],
    "reproduce": ["repeat", "--list"],
}


def command_line_cases() -> Iterator[Case]:
    made = ground()
    for verb, command in _verbs():
        given = [str(made.vector_run) if text == "RUN" else text for text in _GIVEN[verb]]
        lines: dict[str, list[str]] = {"an unknown option": [*given, "--nonsense"]}
        for place, text in enumerate(given[:2]):
            if not text.startswith("-"):
                lines |= {
                    f"{'RUN' if text.startswith('/') else text} is {words}": [
                        *given[:place], value, *given[place + 1 :]
                    ]
                    for words, value in _TEXTS.items()
                }  # fmt: skip
        for option in command.params:
            flag = next((name for name in option.opts if name.startswith("--")), "")
            if not flag or flag == "--help":
                continue
            if getattr(option, "is_flag", False):
                lines[f"{flag} with a value"] = [*given, f"{flag}=nonsense"]
                continue
            lines[f"{flag} without a value"] = [*given, flag]
            lines |= {f"{flag} {words}": [*given, flag, value] for words, value in _TEXTS.items()}
        for words, arguments in lines.items():
            yield Case(
                name=f"{verb}: {words}",
                prepare=partial(_lay_line, made, [verb, *arguments]),
                makes=_ANYTHING,
                codes=(0, 2, 3, STOPPED, _FAILED),
                by_parser=True,
                cache=made.cache,
            )


def _verbs():
    from dcdc.cli import app

    found = typer.main.get_command(app).commands
    return [(name, found[name]) for name in _GIVEN]


def _lay_line(made: Ground, arguments: list[str], folder: Path):
    (folder / "vectors.npz").write_bytes(made.vectors.read_bytes())
    return partial(stopped_after_a_while, arguments)

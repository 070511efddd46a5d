"""Our steps against the reference's way to run a preset and against floors, in one run.

    python benchmarks/reference.py                                  # cifar10-paper and digits
    python benchmarks/reference.py --preset digits --what steps,reference,floors --device cpu

The parts: `steps` and `perturbations` as `dcdc bench` measures them; `reference`, worker processes
that make copies by Pillow, and eager float32 steps of a plain network; `floors`, of each step the
convolutions alone and all arithmetic at the rate of a matrix product; `store`, batches streamed
from a mapped file and resident ones. Ratios follow, each with what it could be from the fastest and
slowest blocks.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import PIL
import torch

from baselines.floors import floor_trials
from baselines.ratios import Ratio, ratios
from baselines.reference import reference_trials
from baselines.reference_loader import default_workers
from baselines.stores import store_trials
from dcdc.bench.perturbations import perturbation_trials
from dcdc.bench.session import Session
from dcdc.bench.steps import Case, build_case, step_trials
from dcdc.bench.timing import Row, usual_seconds
from dcdc.cli.bench import PRESETS, carry_out, check_options, chosen_parts, table_of
from dcdc.cli.console import wide_out
from dcdc.cli.faults import exit_codes
from dcdc.errors import InputError
from dcdc.runtime.device import pick_device

PARTS = ("steps", "reference", "floors", "perturbations", "store")


def session_of(
    cases: Sequence[Case], parts: Sequence[str], device: torch.device, seconds: float, workers: int
) -> Session:
    return Session(
        cases,
        parts,
        device,
        seconds,
        of_presets={
            "steps": step_trials,
            "reference": partial(reference_trials, n_workers=workers),
            "floors": floor_trials,
        },
        alone={"perturbations": perturbation_trials, "store": store_trials},
    )


def show_ratios(found: Sequence[Ratio]) -> None:
    table = table_of(["", "ratio", "from", "to", "n"])
    for ratio in found:
        title = f"{ratio.preset}: {ratio.name}" if ratio.preset else ratio.name
        numbers = (f"{value:.2f}" for value in (ratio.value, ratio.lowest, ratio.highest))
        table.add_row(title, *numbers, " / ".join(map(str, ratio.n_blocks)))
    wide = wide_out()
    wide.print()
    wide.print(table, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", action="append", help=f"repeatable; {' and '.join(PRESETS)}")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--what", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--seconds", type=float, help="of each measurement; 3, on a CPU 1")
    parser.add_argument("--json", type=Path, help="file for everything measured")
    parser.add_argument("--batch-size", type=int, help="images per step")
    parser.add_argument("--workers", type=int, help="of the loader; the cores, 16 at most")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    with exit_codes():
        measure(options)


def measure(options: argparse.Namespace) -> None:
    parts = chosen_parts(options.what, PARTS)
    check_options(options.seconds, options.json)
    if options.workers is not None and options.workers < 1:
        raise InputError(f"--workers is {options.workers}: give at least 1")
    values = {"train.device": options.device, "batch_size": options.batch_size}
    names = dict.fromkeys(options.preset or PRESETS)
    cases = [build_case(name, values, options.settings) for name in names]
    device = pick_device(cases[0].config.train.device)
    workers = options.workers or default_workers()

    def conclude(rows: Sequence[Row]) -> dict[str, Any]:
        found = ratios(rows)
        if found:
            show_ratios(found)
        return {
            "pillow": PIL.__version__,
            "n_workers": workers,
            "ratios": [ratio.to_dict() for ratio in found],
        }

    seconds = options.seconds or usual_seconds(device)
    carry_out(session_of(cases, parts, device, seconds, workers), options.json, conclude)


if __name__ == "__main__":
    main()

"""One process that works for long keeps its size: memory and open files, at most 5 % more."""

import gc
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from campaign.case import fresh_folder
from campaign.ground import FLAGS, ground
from campaign.process import call, run_verb

N_FITS, N_IMAGES, N_PREDICTIONS = 20, 50_000, 10
_MOST = 1.05
_WARM = 2
"""Rounds in which caches fill."""


@dataclass(frozen=True)
class Long:
    name: str
    n_rounds: int
    work: Callable[[int], None]


def cases() -> Iterator[Long]:
    yield Long(f"{N_FITS} fits in one process", N_FITS, _fit)
    yield Long(f"{N_IMAGES:,} images predicted in one process", N_PREDICTIONS, _predict)


def fault_of(this: Long) -> str:
    with fresh_folder() as folder:
        np.save(folder / "images.npy", np.zeros((N_IMAGES // N_PREDICTIONS, 8, 8, 3), np.uint8))
        made = ground()
        ended = call(partial(_measured, this), folder, cache=made.cache, seconds=600, memory=0)
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.err[-300:]}"
    first, last = json.loads(ended.out.splitlines()[-1])
    grown = [
        f"{what} from {first[what]} to {last[what]}"
        for what in first
        if last[what] > _MOST * first[what]
    ]
    return "; ".join(grown)


def _measured(this: Long) -> None:
    first = {}
    for number in range(this.n_rounds):
        with suppress(SystemExit):
            this.work(number)
        if number == _WARM:
            first = _size()
    print(json.dumps([first, _size()]))


def _size() -> dict[str, int]:
    """The peak: what is resident at a moment depends on what allocators have just given back."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return {
        "peak kB": int(re.search(r"VmHWM:\s*(\d+)", status)[1]),
        "open files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
    }


def _fit(number: int) -> None:
    run_verb(["fit", ground().vectors, "--run", f"run-{number}", *FLAGS, "--epochs", "1"])


def _predict(number: int) -> None:
    flags = ["--out", f"out-{number}.csv", "--device", "cpu", "--quiet"]
    run_verb(["predict", ground().image_run, "images.npy", *flags])
    assert Path(f"out-{number}.csv").exists()

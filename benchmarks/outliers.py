"""How many images that are no digits `--outliers` finds among digits, and how many digits it loses.

    python benchmarks/outliers.py --first 800 --seeds 5 --out record.json

One image in twenty is noise, a letter, a piece of clothing or a texture, as
benchmarks/out_of_distribution.py draws them; a new draw for each seed. The preset of digits is
trained on all of them. `--plain` measures the same without `--outliers` beside it.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from dcdc.config import with_values
from dcdc.data import ImageSet, from_arrays, load_digits
from dcdc.metrics import cluster_accuracy
from dcdc.metrics.health import OUTLIER
from dcdc.prepare.presets import preset
from dcdc.run import run
from dcdc.runtime.environment import own_commit, own_version
from out_of_distribution import clothes, letters, textures

SHARE = 0.05
MADE = {
    "noise": lambda random: random.integers(0, 256, (600, 8, 8)),
    "letters": letters,
    "clothes": clothes,
    "textures": textures,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["noise", "letters", "clothes"])
    parser.add_argument("--first", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        for kind in given.kinds:
            for outliers in (True, False) if given.plain else (True,):
                rows.append(measure(seed, kind, outliers=outliers))
                print(json.dumps(rows[-1]), flush=True)
    for kind in given.kinds:
        found = [row for row in rows if row["kind"] == kind and row["outliers"]]
        median = {
            key: statistics.median(row[key] for row in found)
            for key in ("found", "lost", "acc_of_digits")
        }
        print(json.dumps({"kind": kind, **median}), flush=True)
    record = {
        **{"torch": torch.__version__, "dcdc": own_version(), "commit": own_commit()},
        "rows": rows,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def mixed(seed: int, kind: str) -> tuple[ImageSet, np.ndarray]:
    """Digits with strangers among them, and which are digits."""
    digits = load_digits()
    assert digits.targets is not None
    n_strangers = round(digits.n_images * SHARE / (1 - SHARE))
    random = np.random.default_rng(seed)
    strangers = MADE[kind](random)[:n_strangers].astype(np.uint8)[..., None]
    images = np.concatenate([digits.images, strangers])
    targets = np.concatenate([digits.targets, np.full(n_strangers, 10)])
    order = random.permutation(len(images))
    return from_arrays(images[order], targets[order]), targets[order] < 10


def measure(seed: int, kind: str, *, outliers: bool) -> dict[str, object]:
    images, is_digit = mixed(seed, kind)
    config = with_values(preset("digits"), {"train.seed": seed, "outliers": outliers})
    started = time.perf_counter()
    found = run(config, images).assigned.assignments
    assert images.targets is not None
    outside, told = found == OUTLIER, is_digit & (found != OUTLIER)
    return {
        **{"seed": seed, "kind": kind, "outliers": outliers},
        **{"n_digits": int(is_digit.sum()), "n_strangers": int((~is_digit).sum())},
        "found": round(float(outside[~is_digit].mean()), 4),
        "lost": round(float(outside[is_digit].mean()), 4),
        "acc_of_digits": round(cluster_accuracy(images.targets[told], found[told]), 4),
        "seconds": round(time.perf_counter() - started, 1),
    }


if __name__ == "__main__":
    main()

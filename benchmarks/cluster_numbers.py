"""How often `--clusters auto` finds as many clusters as there are classes, on digits.

    python benchmarks/cluster_numbers.py --first 100 --seeds 10 --out record.json

Features are learnt without labels from the images of the chosen classes alone; the classes are
drawn by the seed. The labels only say what was right.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from dcdc.config import from_mapping, to_mapping
from dcdc.data import from_arrays, load_digits
from dcdc.number_search import find_number
from dcdc.prepare.cluster_number import NumberRange
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import resolve
from dcdc.runtime.environment import own_commit, own_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 8, 6, 4])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for n_classes in given.classes:
        for seed in range(given.first, given.first + given.seeds):
            rows.append(measure(n_classes, seed))
            print(json.dumps(rows[-1]), flush=True)
    record = {
        "source": "digits",
        "torch": torch.__version__,
        "dcdc": own_version(),
        "commit": own_commit(),
        "rows": rows,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


def measure(n_classes: int, seed: int) -> dict[str, object]:
    digits = load_digits()
    assert digits.targets is not None
    kept = np.random.default_rng(seed).choice(10, n_classes, replace=False)
    images = from_arrays(digits.images[np.isin(digits.targets, kept)])
    recipe = to_mapping(preset("digits"))
    recipe["train"]["seed"] = seed
    config = resolve(from_mapping(recipe), images)
    started = time.perf_counter()
    found = find_number(config, images, NumberRange())
    return {
        "n_classes": n_classes,
        "seed": seed,
        "found": found.number,
        "is_settled": found.is_settled,
        "strengths": {str(number): round(s, 3) for number, s in found.strengths.items()},
        "seconds": round(time.perf_counter() - started, 1),
    }


if __name__ == "__main__":
    main()

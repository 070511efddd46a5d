"""Clusters of unequal sizes: a set whose largest class is ten times its smallest, by `sizes`.

    python benchmarks/long_tail.py --first 700 --seeds 5 --out record.json
    python benchmarks/long_tail.py cifar10/test.parquet --backbone efficientnet-lite0
    python benchmarks/long_tail.py cifar10 --device cuda --seeds 1
    python benchmarks/long_tail.py --set heads.epochs=20 --set heads.over_clustering_first=14

Which class has how many images is drawn by the seed. Sizes fall in equal steps (linear), or by an
equal factor, as in CIFAR-10-LT (exponential), or are all there are (none). Without a source it is
the preset of digits; on others, what dcdc suggests for them, or a frozen backbone's features.
A class is cut in two where a second cluster has more than a quarter of it.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dcdc.config import parse_settings
from dcdc.data import Data, ImageSet, VectorSet, from_arrays, load_data
from dcdc.metrics import contingency_table
from dcdc.prepare.frozen_features import frozen_features
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.run import run
from dcdc.runtime.environment import own_commit, own_version

RATIO = 10
CUT = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", default="digits")
    parser.add_argument("--backbone", default=None)
    parser.add_argument("--profile", choices=["linear", "exponential", "none"], default="linear")
    parser.add_argument("--sizes", nargs="+", default=["equal", "free"])
    parser.add_argument("--first", type=int, default=700)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    data = load_data(given.source)
    if given.backbone is not None:
        assert isinstance(data, ImageSet), given.source
        data = frozen_features(data, given.backbone, 10, given.device)
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        for sizes in given.sizes:
            rows.append(measure(data, seed, sizes, given))
            print(json.dumps(rows[-1]), flush=True)
    median = {
        sizes: {
            key: statistics.median(row[key] for row in rows if row["sizes"] == sizes)
            for key in ("acc", "nmi", "ari", "n_cut", "largest_second_share")
        }
        for sizes in given.sizes
    }
    print(json.dumps({"median": median}), flush=True)
    record = {
        "source": "/".join(Path(given.source).parts[-2:]),
        "backbone": given.backbone,
        "profile": given.profile,
        "set": given.set,
        "torch": torch.__version__,
        "dcdc": own_version(),
        "commit": own_commit(),
        "rows": rows,
        "median": median,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def sizes_of(targets: NDArray[np.int64], profile: str) -> NDArray[np.int64]:
    """Of the classes, the largest first. Digits have 174 to 183 images of each: with 182 of the
    first there are 1,000 in equal steps."""
    n_classes, most = int(targets.max()) + 1, int(np.bincount(targets).max())
    steps = np.arange(n_classes) / (n_classes - 1)
    if profile == "none":
        return np.full(n_classes, most)
    if profile == "linear":
        return np.round((most - 1) * (1 - steps * (1 - 1 / RATIO))).astype(np.int64)
    return np.round(np.bincount(targets).min() * RATIO**-steps).astype(np.int64)


def long_tailed(data: Data, seed: int, profile: str) -> Data:
    assert data.targets is not None
    random = np.random.default_rng(seed)
    classes, kept = random.permutation(int(data.targets.max()) + 1), []
    for number, size in zip(classes, sizes_of(data.targets, profile), strict=True):
        kept.append(random.permutation(np.flatnonzero(data.targets == number))[:size])
    rows = np.sort(np.concatenate(kept))
    if isinstance(data, VectorSet):
        names = [data.names[row] for row in rows]
        return VectorSet(data.vectors[rows], names, data.targets[rows], data.class_names)
    return from_arrays(np.asarray(data.images[rows]), data.targets[rows])


def measure(data: Data, seed: int, sizes: str, given: argparse.Namespace) -> dict[str, object]:
    some = long_tailed(data, seed, given.profile)
    assert some.targets is not None
    values = {"train.seed": seed, "train.device": given.device, "sizes": sizes, "n_clusters": 10}
    values |= parse_settings(given.set)
    preset = "digits" if given.source == "digits" else None
    config = prepare_run(some, Overrides(values, preset)).config
    started = time.perf_counter()
    result = run(config, some)
    found = result.assigned.assignments
    table = contingency_table(some.targets, found)
    shares = np.sort(table / table.sum(axis=1, keepdims=True), axis=1)
    scores = result.metrics["scores"]
    return {
        "seed": seed,
        "sizes": sizes,
        "n_images": some.n_images,
        **{key: round(scores[key], 4) for key in ("acc", "nmi", "ari")},
        "n_cut": int((shares[:, -2] > CUT).sum()),
        "sizes_of_cut": table.sum(axis=1)[shares[:, -2] > CUT].tolist(),
        "largest_second_share": round(float(shares[:, -2].max()), 3),
        "class_sizes": np.bincount(some.targets).tolist(),
        "cluster_sizes": sorted(result.metrics["health"]["sizes"], reverse=True),
        "seconds": round(time.perf_counter() - started, 1),
    }


if __name__ == "__main__":
    main()

"""How many images of another kind `--outliers` finds among photos, and how many photos it loses.

    python benchmarks/outliers_among_photos.py stl10/test.parquet cifar100/test.parquet \
        --target coarse_label --first 4000 --out record.json

One image in twenty is of one class of the second source, one class after the other. Both are looked
at by frozen EfficientNet-Lite0, whose weights learnt from ImageNet's labels, once. Each set is
grouped with `--outliers` and without.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from dcdc import DCDC
from dcdc.data import VectorSet, load_images
from dcdc.metrics import cluster_accuracy
from dcdc.metrics.health import OUTLIER
from dcdc.prepare.frozen_features import frozen_features
from dcdc.runtime.environment import own_commit, own_version

BACKBONE, SIDE, SHARE = "efficientnet-lite0", 96, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos")
    parser.add_argument("strangers")
    parser.add_argument("--target", help="the column of the strangers' classes")
    parser.add_argument("--classes", type=int, nargs="+", help="all by default")
    parser.add_argument("--first", type=int, default=0, help="photo to begin with")
    parser.add_argument("--n-photos", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    photos = features_of(given.photos)
    others = features_of(given.strangers, given.target)
    assert photos.targets is not None
    assert others.targets is not None
    own = slice(given.first, given.first + given.n_photos)
    n_strangers = round(given.n_photos * SHARE / (1 - SHARE))
    rows = []
    for number in given.classes or range(len(others.class_names)):
        random = np.random.default_rng([given.seed, number])
        of_class = random.permutation(np.flatnonzero(others.targets == number))[:n_strangers]
        vectors = np.concatenate([photos.vectors[own], others.vectors[np.sort(of_class)]])
        for outliers in (True, False):
            rows.append(measure(vectors, photos.targets[own], given.seed, outliers=outliers))
            kind = others.class_names[number]
            rows[-1] |= {"kind": kind, "first": given.first, "seed": given.seed}
            print(json.dumps(rows[-1]), flush=True)
    record = {"torch": torch.__version__, "dcdc": own_version(), "commit": own_commit()}
    if given.out is not None:
        record["rows"] = rows
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def features_of(source: str, target: str | None = None) -> VectorSet:
    images = load_images(source, size=SIDE, target=target)
    return frozen_features(images, BACKBONE, 10, "cpu")


def measure(
    vectors: np.ndarray, targets: np.ndarray, seed: int, *, outliers: bool
) -> dict[str, object]:
    """`targets`: of the photos, which come first."""
    started = time.perf_counter()
    model = DCDC(
        n_clusters=len(np.unique(targets)),
        random_state=seed,
        outliers=outliers,
        verbose=0,
    )
    found = model.fit_predict(vectors)
    of_photos, of_others = found[: len(targets)], found[len(targets) :]
    told = of_photos != OUTLIER
    return {
        "outliers": outliers,
        "found": round(float((of_others == OUTLIER).mean()), 4),
        "lost": round(float((~told).mean()), 4),
        "acc_of_photos": round(cluster_accuracy(targets[told], of_photos[told]), 4),
        "seconds": round(time.perf_counter() - started, 1),
    }


if __name__ == "__main__":
    main()

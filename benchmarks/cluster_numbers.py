"""How often `--clusters auto` finds as many clusters as there are classes.

    python benchmarks/cluster_numbers.py --first 100 --seeds 10 --out record.json
    python benchmarks/cluster_numbers.py --photos stl10/train.parquet --backbone efficientnet-lite0
    python benchmarks/cluster_numbers.py --features features.npy --seeds 10
    python benchmarks/cluster_numbers.py --classes 10 --seeds 3 --time

Of digits, features are learnt without labels from the images of the chosen classes alone; the
classes are drawn by the seed. `--photos` are looked at by a pretrained backbone, `--most` of each
class, or fewer and fewer by an equal factor, the last class with `--fewest`. `--features` takes
given ones instead, N x D as .npy, of a backbone or of a run (`dcdc predict RUN DATA --out rows.csv
--features features.npy`), and prints the curve. Labels only say what was right. `--time` also
trains a run whose number is given, and the rest of the run that the search has begun, and compares
CPU time.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dcdc.config import RunConfig, with_values
from dcdc.data import (
    Data,
    ImageSet,
    VectorSet,
    from_arrays,
    from_vectors,
    load_data,
    load_digits,
)
from dcdc.number_search import find_number
from dcdc.prepare.cluster_number import NumberRange
from dcdc.prepare.frozen_features import frozen_features
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import resolve
from dcdc.run import run
from dcdc.runtime.environment import own_commit, own_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 8, 6, 4])
    parser.add_argument("--features", type=Path)
    parser.add_argument("--photos", help="a source of images with classes")
    parser.add_argument("--target", help="of several kinds of classes")
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--fewest", type=int)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    seeds, rows = range(given.first, given.first + given.seeds), []
    if given.features is not None:
        vectors = from_vectors(np.load(given.features, allow_pickle=False).astype(np.float32))
        for seed in seeds:
            rows.append(measure(of_vectors(vectors, seed), vectors, seed, given))
            print(json.dumps(rows[-1]), flush=True)
    else:
        photos = None if given.photos is None else features_of(given)
        for n_classes in given.classes:
            for seed in seeds:
                if photos is None:
                    config, data = of_digits(n_classes, seed)
                else:
                    data = some_of(photos, n_classes, seed, given.most, given.fewest or given.most)
                    config = of_vectors(data, seed)
                rows.append({"n_classes": n_classes} | measure(config, data, seed, given))
                print(json.dumps(rows[-1]), flush=True)
        tell(rows)
    source = given.photos or given.features or "digits"
    sizes = {"most": given.most, "fewest": given.fewest or given.most}
    record = {
        "source": "/".join(Path(source).parts[-2:]),
        **({"backbone": given.backbone, **sizes} if given.photos else {}),
        "torch": torch.__version__,
        "dcdc": own_version(),
        "commit": own_commit(),
        "rows": rows,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


def of_digits(n_classes: int, seed: int) -> tuple[RunConfig, Data]:
    digits = load_digits()
    assert digits.targets is not None
    kept = np.random.default_rng(seed).choice(10, n_classes, replace=False)
    images = from_arrays(digits.images[np.isin(digits.targets, kept)])
    return resolve(with_values(preset("digits"), {"train.seed": seed}), images), images


def features_of(given: argparse.Namespace) -> VectorSet:
    images = load_data(given.photos, target=given.target)
    assert isinstance(images, ImageSet), given.photos
    return frozen_features(images, given.backbone, 10, "cpu")


def some_of(photos: VectorSet, n_classes: int, seed: int, most: int, fewest: int) -> VectorSet:
    """Of classes that the seed draws, the first with `most` photos, the last with `fewest`."""
    assert photos.targets is not None
    random = np.random.default_rng(seed)
    classes = random.choice(int(photos.targets.max()) + 1, n_classes, replace=False)
    sizes = np.round(np.geomspace(most, fewest, n_classes)).astype(int)
    rows = [
        random.permutation(np.flatnonzero(photos.targets == number))[:size]
        for number, size in zip(classes, sizes, strict=True)
    ]
    return from_vectors(np.asarray(photos.vectors[np.sort(np.concatenate(rows))], np.float32))


def tell(rows: list[dict[str, Any]]) -> None:
    for n_classes in dict.fromkeys(row["n_classes"] for row in rows):
        found = [row["found"] for row in rows if row["n_classes"] == n_classes]
        away = [abs(number - n_classes) for number in found]
        right, near = sum(n == 0 for n in away), sum(n <= 1 for n in away)
        numbers = " ".join(map(str, found))
        print(f"{n_classes} classes: {numbers}; {right} of {len(found)} right, {near} within one")


def of_vectors(vectors: Data, seed: int) -> RunConfig:
    return prepare_run(vectors, Overrides({"n_clusters": 10, "train.seed": seed})).config


def measure(config: RunConfig, data: Data, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    started, on_cpu = time.perf_counter(), time.process_time()
    found, first = find_number(config, data, NumberRange())
    row = {
        "seed": seed,
        "found": found.number,
        "is_settled": found.is_settled,
        "strengths": {str(number): round(s, 3) for number, s in found.strengths.items()},
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - on_cpu, 1),
    }
    if given.time:
        of_number = with_values(config, {"n_clusters": found.number})
        for begun, name in ((None, "cpu_seconds_of_a_run"), (first, "cpu_seconds_of_what_is_left")):
            on_cpu = time.process_time()
            run(of_number, data, first=begun)
            row[name] = round(time.process_time() - on_cpu, 1)
        whole = row["cpu_seconds"] + row["cpu_seconds_of_what_is_left"]
        row["times"] = round(whole / row["cpu_seconds_of_a_run"], 2)
    return row


if __name__ == "__main__":
    main()

"""DCDC and K-Means on the same features of a frozen backbone, over seeds.

    python benchmarks/features_seeds.py stl10/test.parquet --seeds 3 --out record.json

K-Means is on directions from the mean, the best of ten starts by inertia. The seconds of the
features are those of the first seed: later ones find them in the cache.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans

from dcdc.data import Data, VectorSet, load_data
from dcdc.metrics import score
from dcdc.networks import find_backbone
from dcdc.prepare.assembly import build_model, load_pretrained
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.stored_features import stored_features
from dcdc.run import run
from dcdc.runtime.device import cpu_threads, describe_device
from dcdc.runtime.environment import own_commit, own_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--clusters", type=int, default=None)
    parser.add_argument("--target", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    data = read(given)
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(measure(data, seed, given))
        print(json.dumps(rows[-1]), flush=True)
    median = {
        name: {key: float(np.median([row[name][key] for row in rows])) for key in rows[0][name]}
        for name in ("dcdc", "k_means")
    }
    print(json.dumps({"median": median}), flush=True)
    record = {
        "source": "/".join(Path(given.source).parts[-2:]),
        "n_images": data.n_images,
        "backbone": None if isinstance(data, VectorSet) else given.backbone,
        "threads": given.threads,
        "torch": torch.__version__,
        "dcdc": own_version(),
        "commit": own_commit(),
        "seeds": rows,
        "median": median,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read(given: argparse.Namespace) -> Data:
    known = find_backbone(given.backbone).pretrained
    assert known is not None, given.backbone
    return load_data(given.source, target=given.target, largest_side=known.size)


def measure(data: Data, seed: int, given: argparse.Namespace) -> dict[str, object]:
    values = {
        "train.seed": seed,
        "train.device": given.device,
        "train.threads": given.threads,
        "n_clusters": given.clusters,
    }
    if not isinstance(data, VectorSet):
        values["network.backbone"] = given.backbone
    values = {key: value for key, value in values.items() if value is not None}
    started = time.perf_counter()
    config = prepare_run(data, Overrides(values)).config
    with cpu_threads(given.threads):
        if isinstance(data, VectorSet):
            vectors = data.vectors
        else:
            model = build_model(config)
            load_pretrained(config, model.network)
            vectors = stored_features(model, data)
        with_features = time.perf_counter()
        result = run(config, data)
        done = time.perf_counter()
        away = vectors - np.mean(vectors, axis=0)
        unit = away / np.linalg.norm(away, axis=1, keepdims=True)
        found = KMeans(config.n_clusters, n_init=10, random_state=seed).fit_predict(unit)
    assert data.targets is not None
    return {
        "seed": seed,
        "dcdc": result.metrics["scores"],
        "k_means": score(data.targets, found),
        "seconds_of_features": round(with_features - started, 1),
        "seconds_of_heads": round(done - with_features, 1),
        "seconds_of_k_means": round(time.perf_counter() - done, 1),
        "device": describe_device(result.model.device),
    }


if __name__ == "__main__":
    main()

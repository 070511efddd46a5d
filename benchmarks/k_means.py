"""K-Means on pixels: best of ten starts in few directions against ten starts in all of them.

    python benchmarks/k_means.py cifar10 --out record.json

Both in one process on the same points, one after the other: seconds, and the inertia of the best.
"""

import argparse
import json
import time
from pathlib import Path

import sklearn
from sklearn.cluster import KMeans

from dcdc.data import load_data
from dcdc.methods.k_means import best_of_starts
from dcdc.methods.points import points_of
from dcdc.runtime.environment import own_commit, own_version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    points = points_of(load_data(given.source))
    n_clusters, n_init, seed = given.clusters, given.starts, given.seed
    ways = {
        "few_directions": lambda: best_of_starts(points, n_clusters, n_init, seed),
        "all": lambda: KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points),
    }
    record = {
        "source": Path(given.source).name,
        **{"shape": list(points.shape), "n_clusters": n_clusters, "n_init": n_init, "seed": seed},
        **{"scikit-learn": sklearn.__version__, "dcdc": own_version(), "commit": own_commit()},
    }
    for name, way in ways.items():
        started = time.perf_counter()
        inertia = float(way().inertia_)
        record[name] = {"seconds": round(time.perf_counter() - started, 1), "inertia": inertia}
        print(json.dumps({name: record[name]}), flush=True)
    record["inertia_ratio"] = record["few_directions"]["inertia"] / record["all"]["inertia"]
    record["times_faster"] = round(
        record["all"]["seconds"] / record["few_directions"]["seconds"], 1
    )
    print(json.dumps(record), flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

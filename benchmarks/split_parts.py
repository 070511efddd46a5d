"""Parts of a cluster that holds several classes: which method finds them, and how many there are.

    python benchmarks/split_parts.py runs/digits runs/stl10 --out record.json

For each run with labels, images of 1 to 5 of its classes are taken for one cluster, ten times each,
and parted by the features that the run has kept. ARI against the classes where the number of parts
is theirs, and how often a method finds that number itself. One class has no parts that could be
found: its share is how often a method still asks for more than two.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score, silhouette_score

import dcdc
from dcdc.engine.k_means import centres_of, directions, nearest_centre, reduced_points
from dcdc.engine.prediction_strength import prediction_strengths
from dcdc.metrics.cluster_number import choose_number
from dcdc.run_folder import RunFolder
from dcdc.runtime.environment import own_commit

MOST_IMAGES = 1_000
NUMBERS = range(2, 7)
DRAWS = 10
Part = Callable[[np.ndarray, int], np.ndarray]


def by_k_means(points: np.ndarray, n_parts: int) -> np.ndarray:
    return nearest_centre(points, centres_of(points, n_parts, 0, 5))


def by_ward(points: np.ndarray, n_parts: int) -> np.ndarray:
    return fcluster(linkage(points, "ward"), n_parts, "maxclust") - 1


def by_ward_then_centres(points: np.ndarray, n_parts: int) -> np.ndarray:
    """Each image goes to the nearest centre of Ward's parts, as images beyond a sample would."""
    found = by_ward(points, n_parts)
    centres = np.stack([points[found == part].mean(axis=0) for part in np.unique(found)])
    return nearest_centre(points, centres)


def by_over_clusters(points: np.ndarray, n_parts: int, over: np.ndarray) -> np.ndarray:
    """Clusters of the over-clustering head, joined by Ward on their means."""
    numbers = np.unique(over)
    means = np.stack([points[over == number].mean(axis=0) for number in numbers])
    joined = by_ward(means, min(n_parts, len(numbers)))
    return joined[np.searchsorted(numbers, over)]


def number_by_silhouette(points: np.ndarray, part: Part) -> int:
    values = {n: silhouette_score(points, part(points, n)) for n in NUMBERS}
    return max(values, key=values.__getitem__)


def number_by_strength(points: np.ndarray) -> int:
    strengths = prediction_strengths(points, NUMBERS, np.random.default_rng(0))
    return choose_number(strengths, 2).number


def over_clusters_of(folder: RunFolder, features: np.ndarray) -> np.ndarray | None:
    heads = dcdc.load(folder.path, "cpu").network.heads
    if "over_clustering_head" not in heads:
        return None
    with torch.inference_mode():
        return heads["over_clustering_head"](torch.from_numpy(features)).argmax(1).numpy()


def measure(path: Path, with_strength: bool) -> dict[str, dict[str, dict[str, float]]]:
    folder = RunFolder.open(path)
    sample = folder.read_sample()
    table = folder.read_assignments()
    assert sample is not None
    classes = np.array(table["target"].to_pylist())[sample["rows"]]
    features = sample["features"].astype(np.float32)
    over = over_clusters_of(folder, features)
    known = np.unique(classes)
    random = np.random.default_rng(0)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for n_classes in range(1, 6):
        for _ in range(DRAWS):
            chosen = random.choice(known, n_classes, replace=False)
            rows = np.flatnonzero(np.isin(classes, chosen))
            rows = random.permutation(rows)[:MOST_IMAGES]
            points, _ = reduced_points(directions(features[rows]), spherical=True)
            methods: dict[str, Part] = {
                "k-means": by_k_means,
                "ward": by_ward,
                "ward, then centres": by_ward_then_centres,
            }
            if over is not None:
                own = over[rows]
                methods["over-clustering head"] = lambda p, n, own=own: by_over_clusters(p, n, own)
            key = str(n_classes)
            for name, part in methods.items():
                started = time.perf_counter()
                parts = part(points, max(2, n_classes))
                found[name][f"seconds {key}"].append(time.perf_counter() - started)
                found[name][f"ari {key}"].append(adjusted_rand_score(classes[rows], parts))
                asked = number_by_silhouette(points, part)
                right = asked == n_classes if n_classes > 1 else asked > 2
                found[name][f"silhouette {key}"].append(right)
            if with_strength:
                asked = number_by_strength(points)
                right = asked == n_classes if n_classes > 1 else asked > 2
                found["k-means"][f"prediction strength {key}"].append(right)
    return {
        name: {key: round(float(np.mean(each)), 3) for key, each in values.items()}
        for name, values in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--strength", action="store_true", help="Prediction strength, too: slow.")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    record = {"commit": own_commit(), "draws": DRAWS, "images": MOST_IMAGES, "runs": {}}
    for path in given.runs:
        record["runs"][path.name] = measure(path, given.strength)
        print(path.name, json.dumps(record["runs"][path.name], indent=1), flush=True)
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

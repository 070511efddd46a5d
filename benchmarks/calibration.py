"""How far the softmax share is from the share of images that are right, and what agreement mends.

    python benchmarks/calibration.py runs/digits-510 runs/cifar-61 --out record.json

Of each run with labels: its ACC, its mean softmax share, and the expected calibration error (ECE,
15 bins of equally many images) of the share as it is, and at temperatures that are found without
labels: by agreement with perturbed copies, with the nearest images by features, and with K-Means
anew on halves of images and features. `by labels` is the temperature at which the mean share is
the ACC: no choice without labels can do much better. All by the run's sample, at most 5,000 images.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize_scalar

from dcdc.engine.k_means import centres_of, directions, nearest_centre
from dcdc.metrics.agreement import N_NEIGHBOURS, nearest_by_features, neighbour_agreement
from dcdc.run_folder import RunFolder
from dcdc.runtime.environment import own_commit

BINS = 15
AGAIN = 8
"""Times that K-Means looks at other halves."""


def at_temperature(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    logits = np.log(np.clip(probabilities, 1e-12, 1)) / temperature
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def calibration_error(share: np.ndarray, is_right: np.ndarray) -> float:
    order = np.array_split(np.argsort(share, kind="stable"), BINS)
    gaps = [abs(share[some].mean() - is_right[some].mean()) * len(some) for some in order]
    return float(sum(gaps) / len(share))


def best_temperature(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(lambda log: loss(float(np.exp(log))), bounds=(-2, 4), method="bounded")
    return float(np.exp(found.x))


def by_votes(probabilities: np.ndarray, votes: np.ndarray) -> float:
    """Under which the answers of others, counted in N x K, are the likeliest."""

    def loss(temperature: float) -> float:
        likely = np.log(np.clip(at_temperature(probabilities, temperature), 1e-12, 1))
        return float(-(votes * likely).sum() / votes.sum())

    return best_temperature(loss)


def matched(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Numbers of `found` in the words of `wanted`, so that most agree."""
    n = int(max(found.max(), wanted.max())) + 1
    table = np.zeros((n, n))
    np.add.at(table, (found, wanted), 1)
    rows, columns = linear_sum_assignment(-table)
    names = np.empty(n, int)
    names[rows] = columns
    return names[found]


def votes_of(answers: np.ndarray, n_clusters: int) -> np.ndarray:
    """N x K, of N x times."""
    votes = np.zeros((len(answers), n_clusters))
    np.add.at(votes, (np.arange(len(answers))[:, None], answers), 1)
    return votes


def grouped_anew(features: np.ndarray, assignments: np.ndarray, n_clusters: int) -> np.ndarray:
    """N x times: by K-Means on half of the images and half of the features."""
    random, points = np.random.default_rng(0), directions(features)
    found = []
    for seed in range(AGAIN):
        some = points[:, random.permutation(points.shape[1])[: points.shape[1] // 2]]
        half = random.permutation(len(some))[: len(some) // 2]
        centres = centres_of(some[half], n_clusters, seed, 1)
        found.append(matched(nearest_centre(some, centres), assignments))
    return np.stack(found, axis=1)


def measure(path: Path) -> dict[str, float | str]:
    folder = RunFolder.open(path)
    sample, table = folder.read_sample(), folder.read_assignments()
    assert sample is not None
    targets = np.unique(table["target"].to_pylist(), return_inverse=True)[1]
    clusters = table["cluster"].to_numpy()
    is_right = matched(clusters, targets) == targets
    rows, features = sample["rows"], sample["features"].astype(np.float32)
    right, probabilities = is_right[rows], sample["assign"].astype(np.float64)
    own, n_clusters = probabilities.argmax(axis=1), probabilities.shape[1]
    nearest = nearest_by_features(features)
    viewed = np.searchsorted(rows, sample["view_rows"])
    copies = sample["view_assign_perturbed"].argmax(axis=1)
    temperatures = {
        "copies": by_votes(probabilities[viewed], votes_of(copies[:, None], n_clusters)),
        "neighbours": by_votes(probabilities, votes_of(own[nearest], n_clusters)),
        "anew": by_votes(
            probabilities, votes_of(grouped_anew(features, own, n_clusters), n_clusters)
        ),
        "by labels": best_temperature(
            lambda t: abs(at_temperature(probabilities, t).max(axis=1).mean() - right.mean())
        ),
    }
    found: dict[str, float | str] = {
        "run": path.name,
        "acc": float(is_right.mean()),
        "share": float(probabilities.max(axis=1).mean()),
        "agreement of copies": float((copies == own[viewed]).mean()),
        "agreement of neighbours": float(neighbour_agreement(nearest, own).mean()),
        "ece": calibration_error(probabilities.max(axis=1), right),
    }
    for name, temperature in temperatures.items():
        share = at_temperature(probabilities, temperature).max(axis=1)
        found[f"temperature, {name}"] = temperature
        found[f"share, {name}"] = float(share.mean())
        found[f"ece, {name}"] = calibration_error(share, right)
    return {key: round(v, 4) if isinstance(v, float) else v for key, v in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for path in given.runs:
        rows.append(measure(path))
        print(json.dumps(rows[-1]), flush=True)
    if given.out:
        record = {"commit": own_commit(), "neighbours": N_NEIGHBOURS, "bins": BINS, "runs": rows}
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

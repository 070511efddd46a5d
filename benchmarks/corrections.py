"""What a person's corrections teach: ACC of refined runs, by the number of images she corrected.

    dcdc fit digits --seed 500 --run runs/digits-500
    python benchmarks/corrections.py runs/digits-500 --corrections 1 3 10 30 --out record.json

The person is simulated. She looks at the images one after the other, at random as `dcdc view` shows
them or the least sure first, and moves those that ACC counts as wrong to the cluster of their
class, until she has moved so many. `looked_at` tells how many images that took her. `acc` is of all
images; `acc_others` leaves out those that she corrected, which are right by her hand. The runs must
be finished and have targets; nothing in them is changed.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dcdc.config import parse_settings
from dcdc.engine.edits import Edits, RunAnswers
from dcdc.metrics import score
from dcdc.metrics.matching import match_clusters
from dcdc.prepare.overrides import Overrides
from dcdc.refining import refine
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads
from dcdc.runtime.environment import own_version

ORDERS = ("random", "least sure")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--corrections", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--order", choices=ORDERS, default=ORDERS[0])
    parser.add_argument("--whole-network", action="store_true")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--out", type=Path, help="a JSON file to keep the figures in")
    given = parser.parse_args()
    rows = []
    for path in given.runs:
        rows += measure(RunFolder.open(path), given)
    medians = [median(rows, number) for number in (0, *given.corrections)]
    record = {
        "order": given.order,
        "whole_network": given.whole_network,
        "settings": given.settings,
        "device": "cpu, 1 thread",
        "torch": torch.__version__,
        "dcdc": own_version(),
        "medians": medians,
        "rows": rows,
    }
    if given.out is not None:
        given.out.write_text(as_lines(record), encoding="utf-8")
    titles = list(medians[-1])
    print(f"| {' | '.join(titles)} |\n|{'---:|' * len(titles)}")
    for each in medians:
        print(f"| {' | '.join(shown(each, title) for title in titles)} |")


def measure(folder: RunFolder, given: argparse.Namespace) -> list[dict[str, Any]]:
    table, metrics = folder.read_assignments(), folder.read_metrics()
    targets = np.array(table["target"].to_pylist())
    answers = RunAnswers(
        table["name"].to_pylist(), table["cluster"].to_numpy(), metrics["n_clusters"]
    )
    about = {"run": folder.path.name, "seed": metrics["seed"]}
    rows = [{**about, "corrections": 0, "acc": metrics["scores"]["acc"]}]
    seen = order_of(given.order, table["confidence"].to_numpy(), metrics["seed"])
    wrong = places_of_wrong(targets, answers.clusters, seen)
    values = {"train.device": "cpu", "train.threads": 1, **parse_settings(given.settings)}
    for number in given.corrections:
        moved = seen[wrong[:number]]
        edits = moves(targets, answers, moved)
        started = time.perf_counter()
        with cpu_threads(1):
            result, _ = refine(
                folder, Overrides(values), edits=edits, whole_network=given.whole_network
            )
        found = result.assigned.assignments
        others = np.setdiff1d(np.arange(len(targets)), moved)
        rows.append(
            {
                **about,
                "corrections": number,
                "looked_at": int(wrong[:number][-1]) + 1,
                "acc": score(targets, found)["acc"],
                "acc_others": score(targets[others], found[others])["acc"],
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def order_of(order: str, confidence: NDArray[np.floating], seed: int) -> NDArray[np.int64]:
    """Rows, as the person comes to see them."""
    if order == "random":
        return np.random.default_rng(seed).permutation(len(confidence))
    return np.argsort(confidence, kind="stable")


def places_of_wrong(
    targets: NDArray[np.str_], clusters: NDArray[np.integer], seen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rising places in `seen` of images that are not in the cluster matched to their class."""
    own = own_clusters(targets, clusters)
    wrong = [own.get(targets[row], clusters[row]) != clusters[row] for row in seen]
    return np.flatnonzero(wrong)


def own_clusters(targets: NDArray[np.str_], clusters: NDArray[np.integer]) -> dict[str, int]:
    """By class: the cluster that is matched to it; a class too many has none."""
    return {target: cluster for cluster, target in match_clusters(targets, clusters).items()}


def moves(targets: NDArray[np.str_], answers: RunAnswers, rows: Sequence[int]) -> Edits:
    """Each image to the cluster that is matched to its class."""
    own = own_clusters(targets, answers.clusters)
    made = (
        {"kind": "move", "to": int(own[targets[row]]), "images": [[int(row), answers.names[row]]]}
        for row in rows
    )
    return Edits(answers.digest, tuple(made))


def median(rows: Sequence[dict[str, Any]], number: int) -> dict[str, float]:
    same = [row for row in rows if row["corrections"] == number]
    keys = [key for key in same[0] if key not in ("run", "seed")]
    found = {key: float(np.median([row[key] for row in same])) for key in keys}
    return found | {"corrections": number}


def as_lines(record: dict[str, Any]) -> str:
    """JSON with a line for each row."""
    told = {key: value for key, value in record.items() if not isinstance(value, list) or not value}
    lists = {key: value for key, value in record.items() if key not in told}
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in told.items()]
    for key, values in lists.items():
        lines = ",\n".join(f"  {json.dumps(value)}" for value in values)
        parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def shown(row: dict[str, float], key: str) -> str:
    if key not in row:
        return ""
    digits = {"corrections": 0, "looked_at": 0, "seconds": 1}.get(key, 3)
    return f"{row[key]:.{digits}f}"


if __name__ == "__main__":
    main()

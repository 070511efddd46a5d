"""Which label-free criterion picks the best of several restarts, on digits.

    python benchmarks/restart_criteria.py [--seeds 12] [--first 200] [--set section.key=value ...]

Trains the digits preset from each seed, in one process. The table has, for every criterion, its
rank correlation with ACC over the seeds, the ACC of the seed it picks among all, and the mean ACC
of its picks over every choice of --restarts seeds, beside the mean over seeds and the best one.
"""

import argparse
import sys
from itertools import combinations

import numpy as np
from scipy.stats import spearmanr

from dcdc.config import with_settings, with_values
from dcdc.data import load_images
from dcdc.metrics import adjusted_rand_index, normalized_mutual_info
from dcdc.prepare.assembly import held_out_loss_of
from dcdc.prepare.presets import preset
from dcdc.run import run

CRITERIA = ("loss", "agreement (ARI)", "agreement (NMI)", "confidence")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=200, help="the first seed")
    parser.add_argument("--restarts", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()

    image_set = load_images("digits")
    accuracy, loss, confidence, partitions = [], [], [], []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        config = with_settings(
            with_values(preset("digits"), {"train.seed": seed}), arguments.settings
        )
        result = run(config, image_set)
        accuracy.append(result.metrics["scores"]["acc"])
        loss.append(held_out_loss_of(result.config, result.model, image_set, seed=0))
        confidence.append(result.assigned.confidence.mean())
        partitions.append(result.assigned.assignments)
        print(
            f"seed {seed}: ACC {accuracy[-1]:.3f} loss {loss[-1]:.4f} "
            f"confidence {confidence[-1]:.4f} {result.metrics['training_seconds']:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    acc = np.array(accuracy)
    pairwise = {
        "ARI": between(partitions, adjusted_rand_index),
        "NMI": between(partitions, normalized_mutual_info),
    }

    def values(criterion: str, among: list[int]) -> np.ndarray:
        """Higher is better."""
        if criterion == "loss":
            return -np.array(loss)[among]
        if criterion == "confidence":
            return np.array(confidence)[among]
        table = pairwise[criterion[-4:-1]][np.ix_(among, among)]
        return (table.sum(axis=1) - 1) / (len(among) - 1)

    everyone = list(range(len(acc)))
    groups = [list(group) for group in combinations(everyone, arguments.restarts)]
    spread = f"ACC {acc.min():.3f} to {acc.max():.3f}, mean {acc.mean():.3f}"
    print(f"{len(acc)} seeds from {arguments.first} {arguments.settings}: {spread}\n")
    print(f"| criterion | Spearman with ACC | picked of {len(acc)} | of {arguments.restarts} |")
    print("|---|---:|---:|---:|")
    for criterion in CRITERIA:
        of_all = values(criterion, everyone)
        picked = [acc[group[values(criterion, group).argmax()]] for group in groups]
        print(
            f"| {criterion} | {spearmanr(of_all, acc)[0]:.2f} | {acc[of_all.argmax()]:.3f} "
            f"| {np.mean(picked):.3f} |"
        )
    best = np.mean([acc[group].max() for group in groups])
    print(f"| the mean seed | | {acc.mean():.3f} | {acc.mean():.3f} |")
    print(f"| the best seed, by labels | | {acc.max():.3f} | {best:.3f} |")


def between(partitions: list[np.ndarray], measure) -> np.ndarray:
    return np.array([[measure(one, other) for other in partitions] for one in partitions])


if __name__ == "__main__":
    main()

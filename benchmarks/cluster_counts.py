"""What scores that need no labels say of the number of clusters, on digits, which have ten.

    python benchmarks/cluster_counts.py [--counts 5 8 10 12 15] [--epochs 6] [--seed 0]

`score` is that of `DCDC.score` without targets, a silhouette by cosine on the features; the others
are what else could have been taken.
"""

import argparse

from sklearn.datasets import load_digits
from sklearn.metrics import silhouette_score

from dcdc import DCDC
from dcdc.data import from_arrays
from dcdc.metrics import normalized_mutual_info
from dcdc.prepare.assembly import held_out_loss_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[5, 8, 10, 12, 15])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    digits = load_digits()
    images = digits.images / 16
    print("| clusters | score | by Euclid | on pixels | held-out loss | ACC | NMI |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in arguments.counts:
        model = DCDC(
            count, preset="digits", epochs=arguments.epochs, random_state=arguments.seed
        ).fit(images)
        features, labels = model.transform(images), model.labels_
        figures = (
            model.score(images),
            silhouette_score(features, labels),
            silhouette_score(digits.data, labels),
            held_out_loss_of(model.config_, model.model_, from_arrays(images), seed=0),
            model.score(images, digits.target),
            normalized_mutual_info(digits.target, labels),
        )
        print(f"| {count} | {' | '.join(f'{figure:.3f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()

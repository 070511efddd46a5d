"""Methods of the paper's table on digits over several seeds, with their own defaults.

    python benchmarks/methods_seeds.py [--methods ae,dae] [--seeds 3] [--first 0]

Prints a Markdown row per method and seed: ACC, NMI, ARI and seconds.
"""

import argparse
import time

from dcdc.data import load_digits
from dcdc.methods import METHODS, find_method
from dcdc.metrics import score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    digits = load_digits()
    print("| method | seed | acc | nmi | ari | seconds |\n|---|---:|---:|---:|---:|---:|")
    for name in given.methods.split(","):
        method = find_method(name).load()
        for seed in range(given.first, given.first + given.seeds):
            started = time.perf_counter()
            found = score(digits.targets, method(digits, 10, seed).assignments)
            seconds = time.perf_counter() - started
            scores = " | ".join(f"{found[key]:.3f}" for key in ("acc", "nmi", "ari"))
            print(f"| {name} | {seed} | {scores} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()

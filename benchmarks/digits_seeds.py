"""DCDC against K-Means on digits over several seeds, each in a process of its own.

    python benchmarks/digits_seeds.py [--seeds 5] [--first 0] [--set section.key=value ...]
        [--out FILE.json]

Prints a Markdown table: scores, training time and peak memory per seed, then the medians. --out
keeps every seed unrounded, with settings, versions and commit: the record of a table in docs/.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

COLUMNS = ("acc", "nmi", "ari")
OF_ALL_SEEDS = ("device", "torch", "commit")


def one_seed(seed: int, settings: list[str]) -> dict[str, float]:
    from dcdc.config import with_settings, with_values
    from dcdc.data import load_images
    from dcdc.methods import find_method
    from dcdc.metrics import score
    from dcdc.prepare.presets import preset
    from dcdc.run import run
    from dcdc.runtime.environment import peak_memory_mb

    config = with_settings(with_values(preset("digits"), {"train.seed": seed}), settings)
    digits = load_images("digits")
    metrics = run(config, digits).metrics
    pixels = score(digits.targets, find_method("k-means").cluster(digits, 10, seed).assignments)
    return {
        "seed": seed,
        **{key: metrics["scores"][key] for key in COLUMNS},
        **{f"k-means {key}": pixels[key] for key in COLUMNS},
        "seconds": metrics["training_seconds"],
        "peak MB": peak_memory_mb(),
        "device": metrics["device"],
        "torch": metrics["torch"],
        "commit": metrics.get("commit"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--out", type=Path, help="a JSON file to keep the figures in")
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(one_seed(arguments.one, arguments.settings)))
        return
    rows = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        settings = [part for setting in arguments.settings for part in ("--set", setting)]
        command = [sys.executable, __file__, "--one", str(seed), *settings]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        print(f"seed {seed}: ACC {rows[-1]['acc']:.3f}", file=sys.stderr, flush=True)
    if arguments.out is not None:
        arguments.out.write_text(record(rows, arguments.settings))
    titles = [key for key in rows[0] if key not in OF_ALL_SEEDS]
    print(f"torch {rows[0]['torch']}, {rows[0]['device']}, Python {platform.python_version()}\n")
    print(f"| {' | '.join(titles)} |\n|{'---:|' * len(titles)}")
    for row in rows:
        print(f"| {' | '.join(shown(key, row[key]) for key in titles)} |")
    medians = [shown(key, statistics.median(row[key] for row in rows)) for key in titles[1:]]
    print(f"| median | {' | '.join(medians)} |")


def record(rows: list[dict[str, float]], settings: list[str]) -> str:
    """All seeds as JSON, unrounded; what they share is told once."""
    shared = {key: rows[0][key] for key in OF_ALL_SEEDS}
    seeds = [{key: row[key] for key in row if key not in OF_ALL_SEEDS} for row in rows]
    told = {"preset": "digits", "settings": settings, "python": platform.python_version()}
    return json.dumps({**told, **shared, "seeds": seeds}, indent=1) + "\n"


def shown(key: str, value: float) -> str:
    decimals = {"seed": 0, "seconds": 1, "peak MB": 0}.get(key, 3)
    return f"{value:.{decimals}f}"


if __name__ == "__main__":
    main()

"""How long OpenMP threads may spin while they wait: steps of two threads, alone and beside another.

    python benchmarks/spinning.py [--seconds 4] [--rounds 3]

A step is that of the small backbone on 128 images of 16 x 16. Each figure is the median over rounds
of a process of its own, in ms; ratios within one call are what counts, the machine may be shared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

COUNTS = ("default", "0", "1000", "10000")


def steps(threads: int, seconds: float) -> float:
    """Median ms of a step."""
    import torch

    from dcdc.networks import build_backbone

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    backbone = build_backbone("small", 1)
    images = torch.rand(128, 1, 16, 16)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken) < 8:
        began = time.perf_counter()
        backbone(images).square().mean().backward()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken[3:])


def measured(threads: int, count: str, seconds: float) -> float:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    environment.pop("GOMP_SPINCOUNT", None)
    if count != "default":
        environment["GOMP_SPINCOUNT"] = count
    command = [sys.executable, __file__, "--child", str(threads), "--seconds", str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", type=int)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(steps(asked.child, asked.seconds)))
        return
    rows = [(1, "default"), *((2, count) for count in COUNTS)]
    found: dict[tuple[int, str, bool], list[float]] = {}
    for _ in range(asked.rounds):
        for beside in (False, True):
            busy = [sys.executable, "-c", "while True: pass"]
            other = subprocess.Popen(busy) if beside else None
            try:
                for threads, count in rows:
                    taken = measured(threads, count, asked.seconds)
                    found.setdefault((threads, count, beside), []).append(taken)
            finally:
                if other is not None:
                    other.kill()
    print(f"{'threads':>7} {'spin count':>10} {'alone':>8} {'beside a busy process':>22}")
    for threads, count in rows:
        alone, shared = (statistics.median(found[threads, count, at]) for at in (False, True))
        print(f"{threads:7} {count:>10} {alone:8.1f} {shared:22.1f}")


if __name__ == "__main__":
    main()

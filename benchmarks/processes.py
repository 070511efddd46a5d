"""One process against two that share its batch, on this machine's CPU, in one run.

    python benchmarks/processes.py            # digits, its own batch and four times as many
    python benchmarks/processes.py --batch-sizes 256 --rounds 5

Rounds alternate, so that other work on the machine weighs on all alike; medians over the rounds.
"two apart" are two processes at once, each alone with half the batch: what two cores give where
nothing is exchanged and no loss is of the whole batch. Efficiency: one's time over twice two's.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time


def steps(batch_size: int, seconds: float) -> None:
    """As one of the processes: milliseconds a step on stdout, of the first."""
    import torch

    from dcdc.config import with_values
    from dcdc.data import load_digits
    from dcdc.data.store import epoch_batches
    from dcdc.engine.observer import SilentObserver
    from dcdc.prepare.assembly import build_training
    from dcdc.prepare.presets import preset
    from dcdc.prepare.resolve import resolve
    from dcdc.runtime.batch_share import BatchShare
    from dcdc.runtime.launch import read_launch
    from dcdc.runtime.processes import joined

    torch.set_num_threads(1)
    digits = load_digits()
    values = {"heads.batch_size": batch_size, "train.device": "cpu"}
    with joined(read_launch(), torch.device("cpu")) as processes:
        config = resolve(with_values(preset("digits"), values), digits, processes.size)
        trainer = build_training(config, digits, SilentObserver(), None, processes).trainer
        trainer.network.train()
        step = trainer.steps[trainer.plan.names.index("heads")]
        order = torch.Generator().manual_seed(0)
        batches = epoch_batches(digits.n_images, batch_size, order)
        if processes.joined:
            batches = BatchShare(processes, batch_size).of(batches)
        taken, done = 0.0, 0
        while not processes.all_reduce_max(taken > seconds and done > 3):
            started = time.perf_counter()
            step(batches[done % len(batches)], ("cluster_head",))
            taken += time.perf_counter() - started if done >= 3 else 0
            done += 1
        if processes.is_first:
            print(1000 * taken / (done - 3))


def start(batch_size: int, seconds: float, **place: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--child", str(batch_size), "--seconds", str(seconds)]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | {key: str(value) for key, value in place.items()}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def ms(processes: list["subprocess.Popen[str]"]) -> float:
    """The slowest that spoke."""
    said = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes)
    return max(float(text) for text in said if text)


def sharing(batch_size: int, seconds: float) -> list["subprocess.Popen[str]"]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [start(batch_size, seconds, RANK=r, LOCAL_RANK=r, **common) for r in range(2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--child", type=int)
    asked = parser.parse_args()
    if asked.child:
        steps(asked.child, asked.seconds)
        return
    print("| batch | one, ms | two, ms | two apart, ms | speed-up | efficiency | of two apart |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for batch in asked.batch_sizes:
        rounds = [
            (
                ms([start(batch, asked.seconds)]),
                ms(sharing(batch, asked.seconds)),
                ms([start(batch // 2, asked.seconds) for _ in range(2)]),
            )
            for _ in range(asked.rounds)
        ]
        one, two, apart = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(
            f"| {batch} | {one:.1f} | {two:.1f} | {apart:.1f} | {one / two:.2f} "
            f"| {one / (2 * two):.2f} | {apart / two:.2f} |"
        )


if __name__ == "__main__":
    main()

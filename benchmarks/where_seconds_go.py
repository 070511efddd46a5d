"""Where each second of a `dcdc` command goes, from its first import to its last file.

    python benchmarks/where_seconds_go.py --out seconds.json fit cifar10 --preset cifar10

A thread looks every 20 ms at what the main thread is at, and counts it for the first kind below
that one of its callers belongs to. A GPU works on while the host goes on, so the time of steps is
told where the host waits for them: mostly "steps", some of it in what comes next. The backward pass
of a step that is recorded runs in a thread of autograd's, and counts where the main thread waits.
Commands that begin processes of their own are not looked into.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

BETWEEN_LOOKS = 0.02
RECORDING, STEPS = "kernels built, steps recorded", "steps"
KINDS: list[tuple[str, str, tuple[str, ...]]] = [
    # kind, end of the file's path, functions (none: all)
    (RECORDING, "engine/captured_step.py", ("_record",)),
    ("checkpoints", "engine/checkpoints.py", ()),
    ("K-Means", "engine/k_means.py", ()),
    ("K-Means", "engine/device_k_means.py", ()),
    ("neighbours", "engine/neighbours.py", ()),
    ("evaluation", "engine/evaluation.py", ("__call__",)),
    ("what a phase or an epoch begins with", "engine/trainer.py", ("_begin", "_batches_left")),
    (STEPS, "engine/trainer.py", ("_train_epoch",)),
    ("outliers", "engine/outliers.py", ()),
    ("answers", "run/results.py", ("answered",)),
    ("features of the sample and of all images", "run/results.py", ("sample_of",)),
    ("features of the sample and of all images", "engine/sample.py", ()),
    ("report", "report/__init__.py", ("write_report",)),
    ("run folder", "run_folder.py", ()),
    ("run folder", "run/results.py", ("write_results",)),
    ("decoding and reading images", "data/row_cache.py", ()),
    ("decoding and reading images", "cli/reading.py", ()),
    ("network and images onto the device", "prepare/assembly.py", ("build_training",)),
    ("imports", "importlib._bootstrap>", ()),
]
OTHER = "other"


class Sampler(threading.Thread):
    """Looks at the main thread until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.looks: Counter[str] = Counter()
        self.first_look: dict[str, float] = {}
        """At each kind; at steps, once the first of them is recorded, where steps are."""
        self.wanted = True
        self._watched = threading.main_thread().ident

    def run(self) -> None:
        while self.wanted:
            frame = sys._current_frames().get(self._watched or 0)
            kind = kind_of(stack_of(frame))
            if kind == RECORDING and kind not in self.first_look:
                self.first_look.pop(STEPS, None)
            self.first_look.setdefault(kind, time.perf_counter())
            self.looks[kind] += 1
            time.sleep(BETWEEN_LOOKS)

    def seconds(self, total: float) -> dict[str, float]:
        """Of each kind, the longest first; they add up to `total`."""
        n_looks = max(1, sum(self.looks.values()))
        return {kind: total * n / n_looks for kind, n in self.looks.most_common()}


def stack_of(frame: FrameType | None) -> list[tuple[str, str]]:
    """File and function of every caller."""
    found = []
    while frame is not None:
        found.append((frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name))
        frame = frame.f_back
    return found


def kind_of(stack: list[tuple[str, str]]) -> str:
    for kind, path, functions in KINDS:
        if any(
            file.endswith(path) and (not functions or function in functions)
            for file, function in stack
        ):
            return kind
    return OTHER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the record goes, as JSON")
    parser.add_argument(
        "--streamed", action="store_true", help="as where a set does not fit: from the disk"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what follows `dcdc`")
    options = parser.parse_args()
    if not options.command:
        parser.error("which command? for instance: fit digits")
    started = time.perf_counter()
    sampler = Sampler()
    sampler.start()
    sys.argv = ["dcdc", *options.command]
    code: object = 0
    if options.streamed:
        _stream_all()
    try:
        from dcdc.cli import main as run_command

        run_command()
    except SystemExit as stopped:
        code = stopped.code
    total = time.perf_counter() - started
    sampler.wanted = False
    sampler.join()
    seconds = sampler.seconds(total)
    print("\n| | seconds |\n|---|---:|")
    for kind, n in seconds.items():
        print(f"| {kind} | {n:.1f} |")
    print(f"| **from command to end** | **{total:.1f}** |")
    first_step = sampler.first_look.get(STEPS, started) - started
    print(f"| from command to the first training step | {first_step:.1f} |")
    if options.out is not None:
        record = _record(options.command, seconds, total) | {"first_step": round(first_step, 2)}
        options.out.write_text(json.dumps(record, indent=2))
    sys.exit(code if isinstance(code, int) else bool(code))


def _stream_all() -> None:
    import dcdc.data.store as store

    store._RESIDENT_SHARE = store._RESIDENT_BYTES = 0


def _record(command: list[str], seconds: dict[str, float], total: float) -> dict[str, object]:
    import torch

    from dcdc.runtime.device import describe_device, pick_device
    from dcdc.runtime.environment import own_commit, peak_memory_mb

    gpu_peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return {
        "command": command,
        "seconds": {kind: round(n, 2) for kind, n in seconds.items()},
        "total": round(total, 2),
        "peak_mb": round(peak_memory_mb() or 0),
        "gpu_peak_mb": gpu_peak // 2**20,
        "device": describe_device(pick_device("auto")),
        "torch": torch.__version__,
        "commit": own_commit(),
    }


if __name__ == "__main__":
    main()

"""What is damaged: real images, sources, runs and caches, made once for a whole campaign."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import numpy as np
from PIL import Image

from campaign.process import call, run_verb, warm

QUICK = {
    "heads.batch_size": 8,
    "network.over_clusters": 6,
    "train.device": "cpu",
    "train.threads": 1,
    "train.checkpoint_every": 1,
}
FLAGS = ["--clusters", "3", "--epochs", "3", "--quiet", "--no-report"]
FLAGS += [text for key, value in QUICK.items() for text in ("--set", f"{key}={value}")]
IMAGE_FLAGS = ["--backbone", "small", "--size", "8", "--set", "heads.n_repeats=2"]


@dataclass(frozen=True)
class Ground:
    folder: Path
    photos: Path
    """A folder of twelve images of three kinds."""
    vectors: Path
    """24 rows of 12 numbers, with targets and names."""
    image_run: Path
    vector_run: Path
    """Finished, with names, a report and its map."""
    stopped_run: Path
    """Of the same vectors: two of its three epochs are done."""
    model: Path
    """A model folder."""
    cache: Path


def two_kinds(n_rows: int, width: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    targets = np.arange(n_rows) % 3
    middles = 4 * np.random.default_rng(7).normal(size=(3, width))
    return (middles[targets] + draw.normal(size=(n_rows, width))).astype(np.float32), targets


def picture(number: int, side: int = 16) -> Image.Image:
    draw = np.random.default_rng(number)
    pixels = draw.uniform(0, 60, (side, side, 3))
    pixels[number % 3 :: 3, :, number % 3] += 180
    return Image.fromarray(pixels.astype(np.uint8))


@lru_cache
def ground() -> Ground:
    warm()
    folder = Path(tempfile.mkdtemp(prefix="campaign-ground-"))
    owner = os.getpid()
    atexit.register(lambda: owner == os.getpid() and shutil.rmtree(folder, ignore_errors=True))
    made = Ground(
        folder=folder,
        photos=folder / "photos",
        vectors=folder / "vectors.npz",
        image_run=folder / "image-run",
        vector_run=folder / "vector-run",
        stopped_run=folder / "stopped-run",
        model=folder / "model",
        cache=folder / "cache",
    )
    for number in range(12):
        kind = made.photos / f"kind-{number % 3}"
        kind.mkdir(parents=True, exist_ok=True)
        picture(number).save(kind / f"{number:02}.png")
    rows, targets = two_kinds(24)
    np.savez(made.vectors, vectors=rows, targets=targets)
    (folder / "names.json").write_text('{"format": 1, "clusters": {"0": "red", "2": "blue ones"}}')
    _done(made, ["fit", made.photos, "--run", made.image_run, *FLAGS, *IMAGE_FLAGS])
    _done(made, ["fit", made.vectors, "--run", made.vector_run, *FLAGS])
    _done(made, ["report", made.vector_run, "--names", folder / "names.json", "--quiet"])
    shutil.copytree(made.vector_run, made.stopped_run)
    stop_after_two_epochs(made.stopped_run)
    _done(made, lambda: _save(made.vector_run, made.model))
    _done(made, ["evaluate", made.vector_run])
    _done(made, ["predict", made.vector_run, made.vectors, "--out", folder / "out.csv"])
    gc.freeze()  # a fork's collector need not look at, and so copy, all that is there
    return made


def stop_after_two_epochs(run: Path) -> None:
    """As a kill between two epochs leaves it."""
    for path in sorted(run.iterdir()):
        if path.name not in ("config.json", "history.jsonl", "checkpoint"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(sorted((run / "checkpoint").iterdir())[-1])
    lines = (run / "history.jsonl").read_text().splitlines(keepends=True)
    (run / "history.jsonl").write_text("".join(lines[:-1]))


def _save(run: Path, folder: Path) -> None:
    import dcdc

    dcdc.load(run, "cpu").save(folder)


def _done(made: Ground, work: object) -> None:
    """What the child imported for it is imported here: later forks begin with it."""
    own = (lambda: run_verb(work)) if isinstance(work, list) else work
    modules = made.folder / "modules"

    def telling() -> None:
        try:
            own()
        finally:
            modules.write_text("\n".join(sys.modules))

    ended = call(telling, made.folder, cache=made.cache, seconds=120)
    assert ended.code == 0, ended.err or ended.hung
    for name in modules.read_text().splitlines():
        if name not in sys.modules:
            with suppress(Exception):  # made by another module, under its name
                import_module(name)

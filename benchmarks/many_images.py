"""What a run of many images spends beside its training steps, and in how much memory.

    python benchmarks/many_images.py 60000 250000 1000000 --out many.json       # on a GPU
    python benchmarks/many_images.py 1000000 --streamed                         # from the disk
    python benchmarks/many_images.py 2000 4000 --set network.backbone=small     # a try on a CPU

Images are made here: 32 x 32, of 100 kinds, ten shapes with ten textures each, so a right answer
exists. Each size is one `dcdc fit` with an epoch of every phase, in a process of its own, as
`where_seconds_go.py` looks at it: K-Means, neighbours, evaluation, answers, features of all images,
run folder and report. "Beside steps" leaves out steps, the building of kernels and imports.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from dcdc.metrics import score

SIDE, N_SHAPES, N_TEXTURES = 32, 10, 10
CHUNK = 10_000
OF_TRAINING = ("steps", "kernels built, steps recorded", "imports")
RECIPE = (
    *("phases=contrast,frozen_heads,self_label", "contrast.epochs=1", "frozen_heads.epochs=1"),
    *("self_label.epochs=1", "self_label.copies=strong", "network.over_clusters=0"),
)


def drawn(n_images: int, device: torch.device, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Images, uint8, n x 32 x 32 x 3, and their kinds, in parts."""
    generator = torch.Generator(device=device).manual_seed(seed)
    for start in range(0, n_images, CHUNK):
        n = min(CHUNK, n_images - start)
        kinds = torch.randint(N_SHAPES * N_TEXTURES, (n,), generator=generator, device=device)
        yield _images(kinds, generator), kinds


def _images(kinds: Tensor, generator: torch.Generator) -> Tensor:
    """A textured shape of any colour, place, size and turn on a ground of another colour."""
    n, device = len(kinds), kinds.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand((n, *shape), generator=generator, device=device)

    axis = torch.linspace(-1, 1, SIDE, device=device)
    down, right = torch.meshgrid(axis, axis, indexing="ij")
    place = 0.5 * (uniform(2) - 0.5)
    turn, size = 6.283 * uniform(1, 1), 0.45 + 0.3 * uniform(1, 1)
    y, x = down - place[:, 0, None, None], right - place[:, 1, None, None]
    x, y = (x * turn.cos() - y * turn.sin()) / size, (x * turn.sin() + y * turn.cos()) / size
    shape = _shapes(x, y).gather(0, (kinds // N_TEXTURES)[None, :, None, None].expand(1, *x.shape))
    textures = _textures(x, y, uniform(SIDE, SIDE))
    texture = textures.gather(0, (kinds % N_TEXTURES)[None, :, None, None].expand(1, *x.shape))
    ink, paper = uniform(1, 1, 3), uniform(1, 1, 3)
    painted = ink * (0.25 + 0.75 * texture[0, ..., None].clamp(0, 1))
    image = torch.where(shape[0, ..., None] > 0, painted, paper) + 0.05 * (
        uniform(SIDE, SIDE, 3) - 0.5
    )
    return (255 * image.clamp(0, 1)).to(torch.uint8)


def _shapes(x: Tensor, y: Tensor) -> Tensor:
    """Ten, above 0 inside: disc, ring, square, triangle, cross, bar, star, crescent, frame, two."""
    radius, angle = (x**2 + y**2).sqrt(), torch.atan2(y, x)
    square = 0.85 - torch.maximum(x.abs(), y.abs())
    return torch.stack(
        [
            1 - radius,
            0.3 - (radius - 0.7).abs(),
            square,
            torch.minimum(y + 0.6, 1 - 1.7 * x.abs() - y),
            torch.maximum(
                torch.minimum(0.3 - x.abs(), 1 - y.abs()), torch.minimum(0.3 - y.abs(), 1 - x.abs())
            ),
            torch.minimum(0.35 - y.abs(), 1.1 - x.abs()),
            0.65 + 0.35 * (5 * angle).cos() - radius,
            torch.minimum(1 - radius, ((x - 0.5) ** 2 + y**2).sqrt() - 0.7),
            torch.minimum(square, torch.maximum(x.abs(), y.abs()) - 0.5),
            torch.maximum(
                0.45 - ((x - 0.5) ** 2 + y**2).sqrt(), 0.45 - ((x + 0.5) ** 2 + y**2).sqrt()
            ),
        ]
    )


def _textures(x: Tensor, y: Tensor, noise: Tensor) -> Tensor:
    """Ten, from 0 to 1: plain, stripes of two widths, checks, dots, rings, rays, noise, shades."""

    def wave(phase: Tensor) -> Tensor:
        return (phase.sin() > 0).float()

    radius, angle = (x**2 + y**2).sqrt(), torch.atan2(y, x)
    return torch.stack(
        [
            torch.ones_like(x),
            wave(7 * x),
            wave(14 * x),
            (wave(8 * x) - wave(8 * y)).abs(),
            ((9 * x).sin() * (9 * y).sin() > 0.4).float(),
            wave(12 * radius),
            wave(6 * angle),
            noise,
            (x + 1) / 2,
            1 - radius,
        ]
    )


def write_images(n_images: int, path: Path) -> np.ndarray:
    """As `.npy`, and the kinds."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = (n_images, SIDE, SIDE, 3)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    kinds, start = [], 0
    for images, drawn_kinds in drawn(n_images, device):
        rows[start : start + len(images)] = images.cpu().numpy()
        kinds.append(drawn_kinds.cpu().numpy())
        start += len(images)
    rows.flush()
    return np.concatenate(kinds)


def measured(
    n_images: int, settings: list[str], folder: Path, *, streamed: bool
) -> dict[str, object]:
    images, run, out = folder / "images.npy", folder / "run", folder / "seconds.json"
    kinds = write_images(n_images, images)
    changes = [word for setting in (*RECIPE, *settings) for word in ("--set", setting)]
    command = [sys.executable, str(Path(__file__).with_name("where_seconds_go.py"))]
    command += [*(["--streamed"] if streamed else []), "--out", str(out), "fit", str(images)]
    command += ["--clusters", str(N_SHAPES * N_TEXTURES), "--backbone", "scratch"]
    command += ["--run", str(run), "--overwrite", *changes]
    subprocess.run(command, check=True)
    told = json.loads(out.read_text())
    answers = pq.read_table(run / "assignments.parquet", columns=["cluster"])["cluster"].to_numpy()
    beside = sum(n for kind, n in told["seconds"].items() if kind not in OF_TRAINING)
    return {
        "images": n_images,
        "streamed": streamed,
        "beside_steps": round(beside, 2),
        "beside_steps_per_million": round(beside * 1e6 / n_images, 1),
        "scores": score(kinds, np.asarray(answers)),
        **told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n_images", type=int, nargs="+")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--streamed", action="store_true", help="as where a GPU has no room")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for n_images in options.n_images:
        with tempfile.TemporaryDirectory() as folder:
            told = measured(n_images, options.settings, Path(folder), streamed=options.streamed)
            rows.append(told)
        if options.out is not None:
            options.out.write_text(json.dumps(rows, indent=2))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\n| images | {' | '.join(str(row['images']) for row in rows)} |")
    print(f"|---|{'---:|' * len(rows)}")
    kinds = dict.fromkeys(kind for row in rows for kind in row["seconds"])  # type: ignore[attr-defined]
    for kind in kinds:
        print(f"| {kind} | {' | '.join(str(row['seconds'].get(kind, 0)) for row in rows)} |")  # type: ignore[attr-defined]
    for key in ("beside_steps", "beside_steps_per_million", "peak_mb", "gpu_peak_mb"):
        print(f"| {key.replace('_', ' ')} | {' | '.join(str(row.get(key, '')) for row in rows)} |")
    print(f"\nthe largest process had {peak:,.0f} MB")


if __name__ == "__main__":
    main()

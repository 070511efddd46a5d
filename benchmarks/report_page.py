"""Time, peak memory and size of the report of 60,000 colour images, 5,000 of them on the map.

    python benchmarks/report_page.py                    # 32 x 32, made here, in 10 clusters
    python benchmarks/report_page.py --clusters 200
    python benchmarks/report_page.py --images some.npy  # N x 32 x 32 x 3, repeated as needed

The images lie in a memory-mapped file, as decoded sources do. Layouts are random: t-SNE, which
takes longer than all the rest, is not part of what is measured. Memory is what a process of its own
took at its peak, beyond what the imports took, with the pages of the mapped file that it read.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from dcdc.config import RunConfig, to_mapping
from dcdc.data.image_set import ImageSet, numbered_names
from dcdc.metrics import score
from dcdc.report import page as report_page
from dcdc.report.page_data import MapPoints
from dcdc.run_folder import RunFolder


def make_images(path: Path, n_images: int, given: np.ndarray | None) -> None:
    """Soft shapes with some noise, about as hard to compress as photographs of that size."""
    random = np.random.default_rng(0)
    images = np.lib.format.open_memmap(path, "w+", np.uint8, (n_images, 32, 32, 3))
    for start in range(0, n_images, 1000):
        stop = min(start + 1000, n_images)
        if given is not None:
            images[start:stop] = given[np.arange(start, stop) % len(given)]
            continue
        coarse = random.integers(0, 256, (stop - start, 8, 8, 3)).repeat(4, 1).repeat(4, 2)
        noise = random.normal(0, 8, (stop - start, 32, 32, 3))
        images[start:stop] = np.clip(coarse + noise, 0, 255)
    images.flush()


def write_run(path: Path, n_images: int, n_clusters: int, given: Path | None) -> None:
    random = np.random.default_rng(1)
    make_images(path / "images.npy", n_images, None if given is None else np.load(given))
    assignments = random.integers(0, n_clusters, n_images)
    wrong = random.random(n_images) < 0.2
    targets = np.where(wrong, random.integers(0, n_clusters, n_images), assignments)
    classes = [f"class {target}" for target in targets]
    folder = RunFolder.create(path / "run")
    folder.write_config(to_mapping(RunConfig(n_clusters=n_clusters)))
    folder.write_assignments(
        numbered_names("photo", n_images), assignments, random.uniform(0.3, 1, n_images), classes
    )
    metrics = {"n_images": n_images, "n_clusters": n_clusters, "image_shape": [32, 32, 3]}
    metrics |= {"scores": score(classes, assignments), "baselines": {}, "epochs": 1, "seed": 0}
    folder.write_metrics(
        metrics | {"training_seconds": 1.0, "device": "none", "torch": "-", "dcdc": "-"}
    )


def measure(path: Path, n_on_map: int) -> tuple[float, float, float]:
    """Seconds, MB at the peak, MB before."""
    images = np.load(path / "images.npy", mmap_mode="r")
    random = np.random.default_rng(2)
    rows = np.sort(random.choice(len(images), n_on_map, replace=False))
    layouts = {name: random.normal(size=(len(rows), 2)) for name in ("t-SNE", "PCA")}
    report_page._map_points = lambda *_: (MapPoints(rows, layouts), None)
    image_set = ImageSet(images, numbered_names("photo", len(images)))
    before = peak()
    started = time.perf_counter()
    report_page.write_figures_and_page(RunFolder.open(path / "run"), image_set)
    return time.perf_counter() - started, peak(), before


def peak() -> float:
    """MB; getrusage would start from the peak of the parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-images", type=int, default=60_000)
    parser.add_argument("--on-map", type=int, default=5_000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--keep", type=Path, help="copy the page here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary)
        write_run(path, options.n_images, options.clusters, options.images)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own_process:
            seconds, most, before = own_process.submit(measure, path, options.on_map).result()
        page = path / "run" / "report.html"
        print(
            f"{options.n_images:,} images, {options.clusters} clusters, {options.on_map:,} on the "
            f"map: {seconds:.1f} s, {most - before:.0f} MB beyond {before:.0f} MB of imports, "
            f"page {page.stat().st_size / 1e6:.2f} MB; {os.cpu_count()} cores"
        )
        if options.keep:
            options.keep.write_bytes(page.read_bytes())


if __name__ == "__main__":
    main()

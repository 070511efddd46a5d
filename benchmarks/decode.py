"""Decoding into the cache against Pillow's own decoding of the same images on the same cores.

    python benchmarks/decode.py                    # images of several kinds, made here
    python benchmarks/decode.py SOURCE [SOURCE...] # any that dcdc fit takes, but arrays

Each source is decoded by a plain Pillow loop (open, convert to RGB) in one thread and in a pool of
as many threads as there are cores, from bytes in memory; and by dcdc from the source into a fresh
cache (read, decode, centre, resize, check sums, write), then opened again. The ratio is to the
faster of the two Pillow ways. Rounds alternate; medians are shown.
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from dcdc.data.decoded import decode_listing
from dcdc.data.listing import BadImage, Listing
from dcdc.data.sources import find_images


def pillow_seconds(contents: list[bytes], n_threads: int) -> float:
    def decode(some: list[bytes]) -> None:
        for content in some:
            Image.open(io.BytesIO(content)).convert("RGB")

    tasks = [contents[i : i + 64] for i in range(0, len(contents), 64)]
    started = time.perf_counter()
    if n_threads == 1:
        for task in tasks:
            decode(task)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(decode, tasks))
    return time.perf_counter() - started


def dcdc_seconds(listing: Listing) -> tuple[float, float]:
    """Into a fresh cache, and again from it."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["DCDC_DATA"] = cache
        started = time.perf_counter()
        decode_listing(listing, on_bad="skip")
        built = time.perf_counter()
        decode_listing(listing, on_bad="skip")
        return built - started, time.perf_counter() - built


def contents_of(listing: Listing) -> list[bytes]:
    found = (image for image in listing.encoded(0) if not isinstance(image, BadImage))
    return [image.read_bytes() if isinstance(image, Path) else image for image in found]


def made_here(folder: Path, n_images: int) -> list[Path]:
    random = np.random.default_rng(0)
    sources = []
    for kind, side in (("png", 32), ("webp", 32), ("jpeg", 96), ("jpeg", 640)):
        source = folder / f"{kind}-{side}"
        source.mkdir()
        rough = random.integers(0, 256, (n_images, 8, 8, 3), np.uint8)
        for number, pixels in enumerate(rough):
            image = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)
            image.save(source / f"{number:05d}.{kind}")
        sources.append(source)
    return sources


def measure(source: Path, rounds: int, n_images: int | None) -> None:
    listing = find_images(source, None, "none" if source.suffix == ".parquet" else None)
    assert isinstance(listing, Listing), f"{source} needs no decoding"
    if n_images is not None:
        whole, n_rows = listing, min(n_images, len(listing))
        listing = Listing(
            where=whole.where,
            names=whole.names[:n_rows],
            encoded=lambda start: islice(whole.encoded(start), n_rows - start),
            fingerprint=f"{whole.fingerprint} {n_rows}",
        )
    contents = contents_of(listing)
    n_cores = os.cpu_count() or 1
    times: dict[str, list[float]] = {"one": [], "all": [], "dcdc": [], "again": []}
    for _ in range(rounds):
        times["one"].append(pillow_seconds(contents, 1))
        times["all"].append(pillow_seconds(contents, n_cores))
        built, again = dcdc_seconds(listing)
        times["dcdc"].append(built)
        times["again"].append(again)
    one, many, ours, again = (statistics.median(times[key]) for key in times)
    spread = max(times["dcdc"]) / min(times["dcdc"])
    print(
        f"{source.name:16} {len(contents):7,} {one:9.2f} {many:9.2f} {ours:9.2f} "
        f"{ours / min(one, many):6.2f} {again:9.3f} {spread:7.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path)
    parser.add_argument("--images", type=int, help="the first so many of each source")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, Pillow {Image.__version__}, {options.rounds} rounds; seconds")
    print(
        f"{'source':16} {'images':>7} {'Pillow 1':>9} {'Pillow n':>9} {'dcdc':>9} {'ratio':>6} "
        f"{'again':>9} {'spread':>7}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for source in options.sources or made_here(Path(folder), 1000):
            measure(source, options.rounds, options.images)


if __name__ == "__main__":
    main()

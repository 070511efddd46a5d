"""Makes the pictures of the README and the docs: drawings and digits, grouped by `dcdc fit`.

    python examples/pictures.py             # a few minutes on a CPU, then docs/figures/*.webp

The drawings need `pip install 'dcdc[efficientnet]'`, the pictures of pages need Chromium.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from dcdc.data import load_images

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs/figures"
TILE, GAP, ARROW = 88, 8, 130  # pixels
HEAP_COLUMNS, CLUSTER_COLUMNS = 7, 8
GREY = (128, 136, 148, 255)  # seen on white and on black


def fit(source: str, run: Path, *more: str) -> Path:
    command = [sys.executable, "-m", "dcdc", "fit", source, "--run", str(run), "--overwrite"]
    subprocess.run([*command, "--device", "cpu", *more], check=True)
    return run


def before_and_after(run: Path, source: str) -> Image.Image:
    """Left the images as they came, right the surest ones of every cluster, a row for each."""
    rows = pq.read_table(run / "assignments.parquet").to_pydict()
    cluster, confidence = np.array(rows["cluster"]), np.array(rows["confidence"])
    n_clusters = cluster.max() + 1
    # Of the surest every so many-th: the first few alone would be more alike than the cluster is.
    surest = [np.where(cluster == each)[0] for each in range(n_clusters)]
    surest = [each[np.argsort(-confidence[each], kind="stable")] for each in surest]
    shown = [each[:: max(1, len(each) // CLUSTER_COLUMNS)][:CLUSTER_COLUMNS] for each in surest]
    heap = np.random.default_rng(0).permutation(len(cluster))[: HEAP_COLUMNS * n_clusters]

    step = TILE + GAP
    after = HEAP_COLUMNS * step + ARROW
    size = (after + CLUSTER_COLUMNS * step - GAP, n_clusters * step - GAP)
    canvas = Image.new("RGBA", size)
    pixels = load_images(source).images

    def put(position: int, x: int, y: int) -> None:
        picture = Image.fromarray(np.asarray(pixels[position]).squeeze()).convert("RGBA")
        smooth = picture.width > TILE // 2
        how = Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST
        canvas.paste(picture.resize((TILE, TILE), how), (x, y))

    for number, position in enumerate(heap):
        put(position, number % HEAP_COLUMNS * step, number // HEAP_COLUMNS * step)
    for row, positions in enumerate(shown):
        for column, position in enumerate(positions):
            put(position, after + column * step, row * step)

    middle, left = size[1] // 2, HEAP_COLUMNS * step + GAP
    right, pen = left + ARROW - 3 * GAP, ImageDraw.Draw(canvas)
    pen.rectangle((left, middle - 6, right - 30, middle + 6), fill=GREY)
    pen.polygon([(right - 40, middle - 28), (right, middle), (right - 40, middle + 28)], fill=GREY)
    return canvas


def picture_of(address: str, file: Path, *, width: int = 1200, height: int = 980) -> bool:
    """A page as Chromium shows it; False where there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: the pictures of pages stay as they are")
        return False
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--user-data-dir={profile}", f"--window-size={width},{height}"),
                *(f"--screenshot={file}", "--virtual-time-budget=10000", address),
            ],
            check=True,
            capture_output=True,
        )
    return True


def picture_of_view(run: Path, file: Path) -> bool:
    """The first page of `dcdc view`, once it knows what takes a while."""
    command = [sys.executable, "-u", "-m", "dcdc", "view", str(run), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("view: ").strip()
        time.sleep(15)
        found = picture_of(address, file, height=640)
        server.terminate()
    return found


def save(picture: Image.Image, file: Path) -> None:
    """Soft grounds would show the edges of a PNG's 256 colours; in all colours it is large."""
    few = len(picture.convert("RGB").getcolors(1 << 24) or ()) < 300  # squares of grey
    picture.save(file, lossless=few, quality=88, method=6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=FIGURES)
    parser.add_argument("--work", type=Path, help="Keeps drawings and runs here.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        work = (asked.work or Path(passing)).resolve()
        drawings = work / "drawings"
        subprocess.run([sys.executable, str(HERE / "drawings.py"), str(drawings)], check=True)
        wanted = ["--clusters", "8", "--backbone", "efficientnet-lite0"]
        runs = {
            "drawings": (fit(str(drawings), work / "runs/drawings", *wanted), str(drawings)),
            "digits": (fit("digits", work / "runs/digits"), "digits"),
        }
        for name, (run, source) in runs.items():
            save(before_and_after(run, source), asked.out / f"{name}.webp")
            for figure in ("clusters", "map"):
                save(
                    Image.open(run / "figures" / f"{figure}.png").convert("RGB"),
                    asked.out / f"{name}-{figure}.webp",
                )
        page = work / "report.png"
        if picture_of((runs["drawings"][0] / "report.html").as_uri(), page):
            save(Image.open(page).crop((40, 425, 1160, 980)), asked.out / "report.webp")
            picture_of_view(runs["drawings"][0], page)
            save(Image.open(page), asked.out / "view.webp")


if __name__ == "__main__":
    main()

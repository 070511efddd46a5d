"""First page, memory and scrolling of `dcdc view` on a folder of 100,000 images.

    python benchmarks/view_page.py                      # files are made here, some 3 kB each
    python benchmarks/view_page.py --n-images 13000
    python benchmarks/view_page.py --scroll             # and in Chromium: the longest frame

The server runs in a process of its own. Its memory is the peak of that process, with torch and all
other imports, after the first page, thumbnails of some thousand images, and the survey of copies
and dates. Scrolling is by a screen in every frame, over the whole grid, by Chromium's DevTools.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import numpy as np
from PIL import Image

from dcdc.config import RunConfig, to_mapping, with_values
from dcdc.metrics import partition_health
from dcdc.run_folder import RunFolder

THUMBNAILS = 2_000
SCROLL = """(() => {
  const grid = document.getElementById("grid"), frames = window.frameTimes = [];
  let last = performance.now();
  requestAnimationFrame(function step(now) {
    frames.push(now - last);
    last = now;
    grid.scrollTop += grid.clientHeight;
    const end = grid.scrollHeight - grid.clientHeight;
    window.isDone = frames.length === 300 || grid.scrollTop >= end;
    if (!window.isDone) requestAnimationFrame(step);
  });
})()"""


def write_photos(folder: Path, n_images: int) -> list[str]:
    """A few pictures, each file with bytes of its own behind the last."""
    random = np.random.default_rng(0)
    encoded = []
    for _ in range(16):
        content = io.BytesIO()
        coarse = random.integers(0, 256, (6, 8, 3), np.uint8)
        Image.fromarray(coarse).resize((320, 240)).save(content, "JPEG", quality=80)
        encoded.append(content.getvalue())
    names = []
    for row in range(n_images):
        name = f"{row // 1000:03d}/{row:06d}.jpg"
        if row % 1000 == 0:
            (folder / f"{row // 1000:03d}").mkdir(parents=True)
        (folder / name).write_bytes(encoded[row % 16] + row.to_bytes(4, "little"))
        names.append(name)
    return names


def write_run(path: Path, n_images: int, n_clusters: int) -> Path:
    random = np.random.default_rng(1)
    names = write_photos(path / "photos", n_images)
    clusters = random.integers(0, n_clusters, n_images)
    folder = RunFolder.create(path / "run")
    values = {"n_clusters": n_clusters, "data.source": str(path / "photos")}
    folder.write_config(to_mapping(with_values(RunConfig(), values)))
    folder.write_assignments(names, clusters, random.uniform(0.3, 1, n_images), None)
    folder.write_metrics(
        {
            **{"n_images": n_images, "n_clusters": n_clusters, "scores": None, "epochs": 1},
            **{"seed": 0, "training_seconds": 1.0, "device": "none", "dcdc": "-"},
            "health": partition_health(np.eye(n_clusters, dtype=np.float32)[clusters]).to_dict(),
        }
    )
    rows = np.sort(random.choice(n_images, min(5000, n_images), replace=False))
    assign = np.full((len(rows), n_clusters), 1 / n_clusters, np.float32)
    folder.write_sample(
        {
            "rows": rows,
            "features": random.normal(size=(len(rows), 256)).astype(np.float16),
            "assign": assign,
            **{"view_rows": rows[:1], "view_assign": assign[:1]},
            "view_assign_perturbed": assign[:1],
        }
    )
    return folder.path


def peak(process: int) -> float:
    """MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def scroll(address: str, profile: Path) -> list[float]:
    """Milliseconds of each frame."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from devtools import Browser, Tab, find_chromium

    browser = Browser(find_chromium() or "chromium", profile)
    try:
        tab = Tab(browser).visit(f"{address}#view=all")
        tab.wait("document.querySelectorAll('.tile img[src]').length > 5")
        tab.run(SCROLL)
        while not tab.run("window.isDone"):
            time.sleep(0.5)
        return list(tab.run("window.frameTimes"))
    finally:
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-images", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--scroll", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary)
        run = write_run(path, options.n_images, options.clusters)
        started = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "dcdc", "view", str(run), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"DCDC_DATA": str(path / "cache"), "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert server.stdout is not None
            address = re.findall(r"http\S+", server.stdout.readline().decode())[0]
            ready = time.perf_counter()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            base = address.partition("?")[0]

            def ask(url: str) -> bytes:
                with browser.open(url) as answer:
                    return bytes(answer.read())

            ask(address)
            overview = json.loads(ask(f"{base}overview"))
            rows = np.frombuffer(ask(f"{base}rows"), np.uint32)
            for row in rows[:30]:
                ask(f"{base}thumbnail/{row}")
            ask(f"{base}about?rows={','.join(map(str, rows[:30]))}")
            first = time.perf_counter()
            for row in rows[: min(THUMBNAILS, len(rows))]:
                ask(f"{base}thumbnail/{row}")
            made = time.perf_counter()
            frames = scroll(address, path / "profile") if options.scroll else []
            while json.loads(ask(f"{base}overview"))["is_surveying"]:
                time.sleep(0.5)
            surveyed = time.perf_counter()
            print(
                f"{overview['n_images']:,} images: server ready in {ready - started:.1f} s, first "
                f"page of 30 images in {first - ready:.2f} s, {THUMBNAILS / (made - first):,.0f} "
                f"thumbnails a second, survey done after {surveyed - ready:.0f} s, peak memory "
                f"{peak(server.pid):.0f} MB; {os.cpu_count()} cores"
            )
            if frames:
                slowest = sorted(frames)[-3:]
                print(
                    f"scrolled {len(frames)} screens: median frame {np.median(frames):.0f} ms, "
                    f"longest {', '.join(f'{each:.0f}' for each in slowest)} ms"
                )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

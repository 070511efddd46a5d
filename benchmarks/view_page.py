"""First page, memory and scrolling of `dcdc view` on a folder of 100,000 images.

    python benchmarks/view_page.py                      # files are made here, some 3 kB each
    python benchmarks/view_page.py --n-images 13000
    python benchmarks/view_page.py --scroll             # and in Chromium: the longest frame
    python benchmarks/view_page.py --scroll --out record.json

The server runs in a process of its own. Its memory is the peak of that process, with all imports,
after the first page, thumbnails of some thousand images, and the survey of copies, dates and all
features. Scrolling is by Chromium's DevTools, while that survey goes on: 300 frames of a twentieth
of a screen, as with a wheel, then 300 of a whole screen, as with the bar at the side.
Beside the time of a frame stands that of the page's own longest task, by the clock and by its
processor: on a machine with other work to do (`load`), the rest of a frame is waiting. So `start`
is told by the clock and by the server's processor.
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
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from dcdc.config import RunConfig, to_mapping, with_values
from dcdc.metrics import partition_health
from dcdc.run_folder import RunFolder
from dcdc.runtime.environment import own_commit

if TYPE_CHECKING:
    from devtools import Tab

THUMBNAILS = 2_000
FEATURES = 512
PACES = {"wheel": 0.05, "bar": 1.0}
"""Screens a frame."""
FRAMES = 300
SCROLL = """(() => {
  const grid = document.getElementById("grid"), frames = window.frameTimes = [];
  let last = performance.now();
  grid.scrollTop = 0;
  window.isDone = false;
  requestAnimationFrame(function step(now) {
    frames.push(now - last);
    last = now;
    grid.scrollTop += PACE * grid.clientHeight;
    const end = grid.scrollHeight - grid.clientHeight;
    window.isDone = frames.length === FRAMES || grid.scrollTop >= end;
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
    features = random.normal(size=(n_images, FEATURES)).astype(np.float16)
    rows = np.sort(random.choice(n_images, min(5000, n_images), replace=False))
    folder.write_features(features if n_images > len(rows) else None)
    assign = np.full((len(rows), n_clusters), 1 / n_clusters, np.float32)
    folder.write_sample(
        {
            "rows": rows,
            "features": features[rows],
            "assign": assign,
            **{"view_rows": rows[:1], "view_assign": assign[:1]},
            "view_assign_perturbed": assign[:1],
        }
    )
    return folder.path


def peak(process: int) -> float:
    """MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def seconds_used(process: int) -> float:
    """Of the processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scroll(address: str, profile: Path) -> dict[str, dict[str, float]]:
    """For each pace milliseconds of its frames, and of the page's longest task."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from devtools import Browser, Tab, find_chromium

    browser = Browser(find_chromium() or "chromium", profile)
    try:
        tab = Tab(browser).visit(f"{address}#view=all")
        tab.wait("document.querySelectorAll('.tile img[src]').length > 5")
        return {name: _scroll_at(tab, pace) for name, pace in PACES.items()}
    finally:
        browser.close()


def _scroll_at(tab: "Tab", pace: float) -> dict[str, float]:
    def go() -> None:
        tab.run(SCROLL.replace("PACE", str(pace)).replace("FRAMES", str(FRAMES)))
        while not tab.run("window.isDone"):
            time.sleep(0.5)

    tasks = tab.trace(go)
    frames = tab.run("window.frameTimes")
    return {
        "frames": len(frames),
        "median_ms": round(float(np.median(frames)), 1),
        "above_100_ms": sum(each > 100 for each in frames),
        "longest_ms": round(max(frames), 1),
        "longest_task_ms": round(max(each.get("dur", 0) for each in tasks) / 1000, 1),
        "longest_task_processor_ms": round(max(each.get("tdur", 0) for each in tasks) / 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-images", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--scroll", action="store_true")
    parser.add_argument("--out", type=Path)
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
            ready, used = time.perf_counter(), seconds_used(server.pid)
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
            scrolled = scroll(address, path / "profile") if options.scroll else {}
            while json.loads(ask(f"{base}overview"))["is_surveying"]:
                time.sleep(0.5)
            record = {
                "commit": own_commit(),
                "n_images": overview["n_images"],
                "cores": os.cpu_count(),
                "load": [round(each, 1) for each in os.getloadavg()],
                "start_s": round(ready - started, 2),
                "start_processor_s": round(used, 2),
                "first_page_s": round(first - ready, 2),
                "thumbnails_per_s": round(THUMBNAILS / (made - first)),
                "survey_s": round(time.perf_counter() - ready),
                "peak_mb": round(peak(server.pid)),
                "scrolled": scrolled,
            }
            print(json.dumps(record, indent=1))
            if options.out:
                options.out.write_text(json.dumps(record, indent=1) + "\n")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

"""docs/extend.md as a reader would take it: each example a file outside the package, used."""

import json
import os
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

PAGE = Path(__file__).parents[1] / "docs" / "extend.md"
ENDING = ("--clusters", "3", "--device", "cpu", "--epochs", "1", "--batch-size", "16")


def examples() -> dict[str, str]:
    """By file name."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.match(r'"""(\w+\.py)', block)[1]: block for block in blocks}


@pytest.fixture
def folder(tmp_path, tiny_set):
    for name, text in examples().items():
        (tmp_path / name).write_text(text)
    np.savez(tmp_path / "images.npz", images=tiny_set.images, targets=tiny_set.targets)
    return tmp_path


def dcdc(folder, plugin, *arguments):
    command = [sys.executable, "-m", "dcdc", "--plugin", plugin, *arguments]
    environment = {**os.environ, "DCDC_DATA": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def fit(folder, plugin, *arguments, source="images.npz"):
    dcdc(folder, plugin, "fit", source, *ENDING, "--run", "run", *arguments, "--no-report")
    return folder / "run"


def test_a_backbone(folder):
    run = fit(folder, "my_backbone.py", "--set", "network.backbone=my-net")
    assert json.loads((run / "config.json").read_text())["network"]["backbone"] == "my-net"
    told = dcdc(folder, "my_backbone.py", "predict", "run", "images.npz", "--out", "rows.csv")
    assert "48" in told
    assert len((folder / "rows.csv").read_text().splitlines()) == 49


def test_a_loss(folder):
    run = fit(folder, "my_loss.py", "--set", "heads.loss=agreement")
    line = json.loads((run / "history.jsonl").read_text().splitlines()[-1])
    assert {"cluster_head/apart", "cluster_head/uneven"} <= line.keys()


def test_a_phase(folder):
    settings = ("phases=sharpen,heads", "sharpen.epochs=2", "sharpen.weight=0.5")
    run = fit(folder, "my_phase.py", *(word for text in settings for word in ("--set", text)))
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in history] == ["sharpen", "sharpen", "heads"]
    assert history[1]["sharpen"] < history[0]["sharpen"]
    assert "sizes" not in history[0]


def test_a_source(folder, tiny_set):
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for number, image in enumerate(tiny_set.images):
            content = BytesIO()
            Image.fromarray(image[..., 0]).save(content, "png")
            archive.writestr(f"{number:03d}.png", content.getvalue())
    run = fit(folder, "my_source.py", source="images.zip")
    assert json.loads((run / "metrics.json").read_text())["n_images"] == 48


@pytest.mark.slow
def test_a_panel(folder):
    run = fit(folder, "my_panel.py")
    dcdc(folder, "my_panel.py", "report", "run")
    assert "<h2>Confidence</h2>" in (run / "report.html").read_text()
    assert (run / "figures" / "confidence.png").is_file()


def test_what_is_not_there_is_refused_in_one_line(folder):
    for name, reason in (("absent.py", "does not exist"), ("broken.py", "cannot be imported")):
        (folder / "broken.py").write_text("1 / 0\n")
        command = [sys.executable, "-m", "dcdc", "--plugin", name, "presets"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2
        assert reason in done.stderr
        assert len(done.stderr.splitlines()) == 1

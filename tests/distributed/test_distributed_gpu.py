"""One rank with all collectives of several: on a GPU they are captured with the step."""

import json
import os
import subprocess
import sys

import pytest
import torch
from peers import free_port

from dcdc.engine.checkpoints import CHECKPOINTS, list_checkpoints, load_checkpoint

DEEP = ["--set", "network.trunk=resnet18", "--set", "instance.epochs=1"]
DEEP += ["--set", "instance.batch_size=16", "--set", "self_label.epochs=1"]
DEEP += ["--set", "self_label.batch_size=16"]
# A tiny set has some images just above a threshold or just below it; all are above this one.
DEEP += ["--set", "self_label.threshold=0.001"]
# Adam makes a whole step of a gradient's last digit, so two runs that add up in another order part
# within an epoch. At this rate the weights stay, and what is compared is every step's gradients.
for phase in ("instance", "train", "self_label"):
    DEEP += ["--set", f"{phase}.learning_rate=1e-7"]


@pytest.mark.parametrize(
    ("device", "precision", "of_losses", "of_gradients"),
    [
        pytest.param("cpu", "float32", 1e-5, 0.02, marks=pytest.mark.slow),
        pytest.param("cuda", "float32", 1e-3, 0.05, marks=pytest.mark.gpu),
        pytest.param("cuda", "bfloat16", 0.02, 0.3, marks=pytest.mark.gpu),
    ],
)
def test_a_step_with_its_collectives_inside_is_the_step_without(
    tiny_file, tiny_flags, tmp_path, device, precision, of_losses, of_gradients
):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    flags = [*tiny_flags, "--device", device, "--no-report", *DEEP]
    flags += ["--set", f"train.precision={precision}"]
    losses, moments = {}, {}
    for name, forced in (("alone", "0"), ("exchanging", "1")):
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "1"]
        launcher += ["--master-port", str(free_port()), "-m", "dcdc", "fit", str(tiny_file)]
        finished = subprocess.run(
            [sys.executable, *launcher, "--run-folder", str(tmp_path / name), *flags],
            env=os.environ | {"DCDC_FORCE_COLLECTIVES": forced, "DCDC_TIMEOUT": "60"},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        assert "cannot be captured" not in finished.stderr
        lines = (tmp_path / name / "history.jsonl").read_text().splitlines()
        losses[name] = [json.loads(line)["loss"] for line in lines]
        kept = list_checkpoints(tmp_path / name / CHECKPOINTS)  # of the heads, of self-labels
        moments[name] = {
            (path.name, key): tensor
            for path in kept
            for key, tensor in load_checkpoint(path).tensors.items()
            if key.endswith("/exp_avg")
        }
    # other orders of adding up
    assert losses["exchanging"] == pytest.approx(losses["alone"], rel=of_losses)
    assert len(moments["alone"]) == len(moments["exchanging"]) > 120
    for key, expected in moments["alone"].items():
        away = (moments["exchanging"][key] - expected).norm()
        assert away <= of_gradients * expected.norm(), key

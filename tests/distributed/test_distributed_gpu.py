"""One rank on a GPU with all collectives of several: they are captured with the step."""

import json
import os
import subprocess
import sys

import pytest
import torch
from peers import free_port

DEEP = ["--set", "network.trunk=resnet18", "--set", "instance.epochs=1"]
DEEP += ["--set", "instance.batch_size=16", "--set", "self_label.epochs=1"]
DEEP += ["--set", "self_label.batch_size=16"]
# A tiny set has some images just above a threshold or just below it; all are above this one.
DEEP += ["--set", "self_label.threshold=0.001"]


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0.02), ("bfloat16", 0.1)])
def test_a_captured_step_has_its_collectives_inside(
    tiny_file, tiny_flags, tmp_path, precision, tolerance
):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    flags = [*tiny_flags, "--device", "cuda", "--no-report", *DEEP]
    flags += ["--set", f"train.precision={precision}"]
    losses = {}
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
    # other orders of adding up
    assert losses["exchanging"] == pytest.approx(losses["alone"], rel=tolerance, abs=tolerance)

"""One rank with all collectives of several: on a GPU they are captured with the step."""

import json
import os
import subprocess
import sys

import pytest
import torch
from peers import free_port

from dcdc.engine.checkpoints import CHECKPOINTS, list_checkpoints, load_checkpoint

DEEP = ["--no-report", "--set", "network.backbone=resnet18"]
DEEP += ["--set", "phases=contrast,heads,self_label", "--set", "contrast.epochs=1"]
DEEP += ["--set", "contrast.batch_size=16", "--set", "self_label.epochs=1"]
DEEP += ["--set", "self_label.batch_size=16"]
# A tiny set has some images just above a threshold or just below it; all are above this one.
DEEP += ["--set", "self_label.threshold=0.001"]
# Adam makes a whole step of a gradient's last digit, so two runs that add up in another order part
# within an epoch. At this rate the weights stay, and what is compared is every step's gradients.
for phase in ("contrast", "heads", "self_label"):
    DEEP += ["--set", f"{phase}.learning_rate=1e-7"]


# With so few images what a layer rounds away is a hundred times that of a gradient. So only what
# rounds little is compared weight by weight: float32 on a CPU, and on a GPU without TF32.


@pytest.mark.parametrize(
    ("device", "of_losses", "of_gradients"),
    [
        pytest.param("cpu", 1e-5, 0.02, marks=pytest.mark.slow),
        pytest.param("cuda", 1e-3, 0.05, marks=pytest.mark.gpu),
    ],
)
def test_a_step_with_its_collectives_inside_is_the_step_without(
    tiny_file, tiny_flags, tmp_path, device, of_losses, of_gradients
):
    flags = [*tiny_flags, "--device", device, "--set", "train.precision=float32"]
    losses, moments = without_and_with_collectives(tiny_file, flags, tmp_path, device)
    assert losses["exchanging"] == pytest.approx(losses["alone"], rel=of_losses)
    for key, expected in moments["alone"].items():
        away = (moments["exchanging"][key] - expected).norm()
        assert away <= of_gradients * expected.norm(), key


@pytest.mark.gpu
def test_in_bfloat16_too_but_for_its_digits(tiny_file, tiny_flags, tmp_path):
    flags = [*tiny_flags, "--device", "cuda", "--set", "train.precision=bfloat16"]
    losses, moments = without_and_with_collectives(tiny_file, flags, tmp_path, "cuda")
    # Not the last, of self-labels: a label is the largest of some shares, the last digit decides
    # between equals, and so few labels make it 7% another loss. In float32, above, it is compared.
    assert losses["exchanging"][:-1] == pytest.approx(losses["alone"][:-1], rel=0.02)
    heads, _ = sorted({checkpoint for checkpoint, _ in moments["alone"]})
    alone, exchanging = (
        torch.cat([tensor.flatten() for (of, _), tensor in moments[name].items() if of == heads])
        for name in ("alone", "exchanging")
    )
    assert torch.cosine_similarity(alone, exchanging, dim=0) > 0.5


def without_and_with_collectives(
    tiny_file, flags, folder, device
) -> tuple[dict[str, list[float]], dict[str, dict[tuple[str, str], torch.Tensor]]]:
    """Every epoch's losses; Adam's first moments at the end of the heads and of self-labels."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    losses, moments = {}, {}
    for name, forced in (("alone", "0"), ("exchanging", "1")):
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "1"]
        launcher += ["--master-port", str(free_port()), "-m", "dcdc", "fit", str(tiny_file)]
        settings = {"DCDC_FORCE_COLLECTIVES": forced, "DCDC_TIMEOUT": "60"}
        finished = subprocess.run(
            [sys.executable, *launcher, "--run-folder", str(folder / name), *flags, *DEEP],
            env=os.environ | settings | {"NVIDIA_TF32_OVERRIDE": "0"},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        assert "cannot be captured" not in finished.stderr
        lines = (folder / name / "history.jsonl").read_text().splitlines()
        losses[name] = [json.loads(line)["loss"] for line in lines]
        moments[name] = {
            (path.name, key): tensor
            for path in list_checkpoints(folder / name / CHECKPOINTS)
            for key, tensor in load_checkpoint(path).tensors.items()
            if key.endswith("/exp_avg")
        }
    assert len(moments["alone"]) == len(moments["exchanging"]) > 120
    return losses, moments

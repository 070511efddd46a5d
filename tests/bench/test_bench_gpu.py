import pytest
import torch

from dcdc.bench import PARTS
from dcdc.bench.session import Session, measure
from dcdc.bench.steps import build_case

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_every_phase_is_captured_and_measured():
    case = build_case("cifar10", {"train.device": "cuda"}, [])
    rows = list(measure(Session([case], PARTS, torch.device("cuda"), 0.2), lambda _: None))
    # Two copies of 256 images, none over frozen features, two of 512.
    assert [row.measured.copies for row in rows if row.part == "steps"] == [512, 0, 1024]
    for row in rows:
        assert row.not_possible is None, row
        assert row.measured.timing.n_blocks == 7
        assert not row.measured.details.get("warnings"), row
    assert all(row.measured.peak_gpu_bytes > 0 for row in rows if row.part == "steps")

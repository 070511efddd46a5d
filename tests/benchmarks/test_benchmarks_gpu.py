import pytest
import torch

import reference
from baselines import floors
from baselines.ratios import ratios
from dcdc.bench.session import measure
from dcdc.bench.steps import build_case

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("name", ["digits", "cifar10-paper"])
def test_every_part_is_possible(name):
    case = build_case(name, {"train.device": "cuda"}, [])
    session = reference.session_of(
        [case], reference.PARTS, torch.device("cuda"), seconds=0.2, workers=4
    )
    rows = list(measure(session, lambda _: None))
    assert {row.part for row in rows} == set(reference.PARTS)
    for row in rows:
        assert row.not_possible is None, row
        assert row.measured.timing.n_blocks == 7
        assert not row.measured.details.get("warnings"), row
    alone = [row for row in rows if row.name.endswith(floors.CONVOLUTIONS)]
    assert {row.measured.details["dtype"] for row in alone} == {case.config.train.precision}
    steps = [row for row in rows if row.part == "steps"]
    assert all(row.measured.peak_gpu_bytes > 0 for row in steps)
    # To the reference two, of each step two, of copies two, of stores one.
    assert len(ratios(rows)) >= 2 + 2 * len(steps) + 2 + 1

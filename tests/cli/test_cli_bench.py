import json
import os
import signal

import pytest

from dcdc.bench import PARTS, perturbations, session, steps
from dcdc.bench.timing import Trial
from dcdc.prepare.assembly import build_training

TINY = [
    *("--preset", "digits", "--device", "cpu", "--batch-size", "4", "--seconds", "0.02"),
    *("--set", "heads.n_repeats=2"),
]
ROW_KEYS = {
    *("part", "preset", "name", "not_possible"),
    *("ms", "fastest_ms", "slowest_ms", "spread", "n_blocks", "calls_per_block"),
    *("warm_up_seconds", "images", "copies", "images_per_second", "copies_per_second"),
    *("peak_gpu_bytes", "details"),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(perturbations, "BATCH_SIZES", (2,))


def test_a_table_on_stdout_and_everything_in_json(dcdc, tmp_path):
    code, out, err = dcdc("bench", *TINY, "--json", "found/bench.json")
    assert code == 0, err
    assert "measuring digits: heads step, cluster head" in err
    assert "not possible: a graph needs CUDA, not cpu" in out

    record = json.loads((tmp_path / "found" / "bench.json").read_text())
    assert record.keys() == {
        *("device", "cpu_cores", "dcdc", "torch", "python", "seconds"),
        *("complete", "configs", "rows"),
    }
    assert record["complete"] is True
    heads, _ = record["configs"]["digits"]["phases"]
    assert (heads["kind"], heads["batch_size"]) == ("heads", 4)
    assert [row["part"] for row in record["rows"]] == [
        *("steps", "steps", "steps", "perturbations", "perturbations")
    ]
    for row in record["rows"]:
        assert row.keys() == ROW_KEYS
        assert row["name"] in out
        if row["not_possible"] is None:
            assert row["fastest_ms"] <= row["ms"] <= row["slowest_ms"]
            assert row["spread"] == pytest.approx(row["slowest_ms"] / row["fastest_ms"])
            assert row["n_blocks"] >= 2
            if row["copies"]:
                rate = row["copies"] / row["ms"] * 1000
                assert row["copies_per_second"] == pytest.approx(rate)
        else:
            assert row["ms"] is None
    assert [row["copies"] for row in record["rows"] if row["preset"]] == [12, 12, 8]


def test_parts_are_chosen_and_come_in_their_order(dcdc):
    code, out, _ = dcdc("bench", *TINY, "--what", "perturbations, steps")
    assert code == 0
    assert out.index("heads step, cluster head") < out.index("copies, eager")
    _, out, _ = dcdc("bench", *TINY, "--what", "perturbations")
    assert "step" not in out


def test_ctrl_c_leaves_what_was_measured(dcdc, monkeypatch, tmp_path):
    def interrupted(_device, _seconds):
        yield Trial("interrupted", lambda: os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(session, "ALONE", {"perturbations": interrupted})
    code, out, err = dcdc("bench", *TINY, "--json", "bench.json")
    assert code == 130
    assert err.splitlines()[-1].startswith("dcdc: interrupted")
    assert "heads step, cluster head" in out
    record = json.loads((tmp_path / "bench.json").read_text())
    assert record["complete"] is False
    assert [row["part"] for row in record["rows"]] == ["steps"] * 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--preset", "digit"), "did you mean 'digits'?"),
        (("--what", "step"), "did you mean 'steps'?"),
        (("--what", ""), f"There are: {', '.join(PARTS)}"),
        (("--seconds", "0"), "--seconds is 0.0"),
        (("--seconds", "nan"), "--seconds is nan"),
        (("--device", "gpu"), "not one of auto, cpu, cuda, mps"),
        (("--batch-size", "1"), "--batch-size 1 must be at least 2"),
        (("--set", "heads.bach_size=4"), "did you mean 'heads.batch_size'?"),
        (("--set", "augment.hue=2"), "augment.hue=2.0 must be 0 to 0.5"),
        (("--json", "."), "is a folder"),
    ],
)
def test_wrong_use_is_one_line(dcdc, flags, message):
    code, out, err = dcdc("bench", *flags)
    assert code == 2
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("dcdc: ")
    assert message in line


def test_what_the_engine_warns_of_is_shown(dcdc, monkeypatch):
    def warning(config, image_set, observer, folder):
        observer.warn("the step runs eagerly and slower")
        return build_training(config, image_set, observer, folder)

    monkeypatch.setattr(steps, "build_training", warning)
    code, out, _ = dcdc("bench", *TINY, "--what", "steps")
    assert code == 0
    assert "the step runs eagerly and slower" in out

"""All parts on the CPU at tiny sizes, and parts that fail while others go on."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace

import pytest

import reference
from baselines import floors, stores
from dcdc.bench import perturbations
from dcdc.bench.session import measure
from dcdc.bench.steps import random_images
from dcdc.prepare.presets import preset

TINY = [
    *("--preset", "digits", "--device", "cpu", "--batch-size", "4", "--seconds", "0.02"),
    *("--workers", "1", "--set", "heads.n_repeats=2"),
]


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(perturbations, "BATCH_SIZES", (2,))
    monkeypatch.setattr(floors, "_SIDE", 64)
    for name, value in (("_N_IMAGES", 40), ("_BATCH_SIZE", 8), ("_ANNOUNCED", 5)):
        monkeypatch.setattr(stores, name, value)


@pytest.fixture
def rows_of(cpu):
    def measured(*cases, parts=reference.PARTS):
        session = reference.session_of(cases, parts, cpu, seconds=0.02, workers=1)
        return list(measure(session, lambda _name: None))

    return measured


@pytest.fixture
def script(monkeypatch, capfd, tmp_path):
    """Runs the script in this process, in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["reference.py", *arguments])
        try:
            reference.main()
        except SystemExit as stopped:
            return stopped.code, *capfd.readouterr()
        return 0, *capfd.readouterr()

    return call


def test_every_part_is_measured_with_its_n_and_spread(digits, rows_of):
    rows = rows_of(digits)
    assert {row.part for row in rows} == set(reference.PARTS)
    assert len(rows) == 17
    for row in rows:
        if row.name.endswith("captured"):
            assert row.not_possible == "a graph needs CUDA, not cpu"
        else:
            assert row.not_possible is None, row
            assert row.measured.timing.n_blocks >= 2
            assert row.measured.timing.spread >= 1


def test_a_case_that_cannot_run_stops_no_other(digits, rows_of):
    """Three channels for a network of one."""
    coloured = random_images(preset("cifar10-paper"))
    broken = replace(digits, preset="broken", image_set=coloured)
    for row in rows_of(broken, digits, parts=["steps", "floors"]):
        if row.preset == "digits" or row.name.startswith("product"):
            assert row.not_possible is None, row
        else:
            assert row.measured is None
            assert "channel" in row.not_possible


def test_a_part_that_cannot_begin_stops_no_other(digits, rows_of, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    *others, last = rows_of(digits, parts=["store", "floors"])
    assert all(row.measured for row in others)
    assert (last.name, last.measured) == ("the rest of store", None)
    assert "/nowhere/at/all" in last.not_possible


def test_the_script_prints_rows_and_ratios_and_writes_both(script, tmp_path):
    code, out, err = script(*TINY, "--json", "found/bench.json")
    assert code == 0, err
    assert "measuring digits: heads step, cluster head" in err
    assert "TFLOP/s" in out
    assert "digits: reference with its loader / ours" in out
    record = json.loads((tmp_path / "found" / "bench.json").read_text())
    assert record.keys() >= {"device", "rows", "pillow", "n_workers", "ratios"}
    assert record["n_workers"] == 1
    assert [row["part"] for row in record["rows"]] == [
        *["steps"] * 3,
        *["reference"] * 3,
        *["floors"] * 7,  # a product, and two of each step
        *["perturbations"] * 2,
        *["store"] * 2,
    ]
    assert {row["copies"] for row in record["rows"] if row["part"] == "reference"} == {12}
    assert all(row["name"][:50] in out for row in record["rows"])  # where no name is broken yet
    for ratio in record["ratios"]:
        assert ratio.keys() == {"preset", "name", "value", "lowest", "highest", "n_blocks"}
        assert ratio["lowest"] <= ratio["value"] <= ratio["highest"]
    assert len(record["ratios"]) == 2 + 2 * 3 + 1


def test_the_batch_size_is_the_main_phases(script, monkeypatch):
    """Which is not called alike in every preset."""
    sessions = []
    monkeypatch.setattr(reference, "carry_out", lambda session, *_: sessions.append(session))
    chosen = ("--preset", "digits", "--preset", "cifar10", "--device", "cpu", "--batch-size", "7")
    code, _, err = script(*chosen)
    assert code == 0, err
    found = [case.config.phases[0].batch_size for case in sessions[0].cases]
    assert found == [7, 7]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--what", "steps,flors"), "did you mean 'floors'?"),
        (("--workers", "0"), "--workers is 0"),
        (("--preset", "digit"), "did you mean 'digits'?"),
        (("--seconds", "0"), "--seconds is 0.0"),
    ],
)
def test_wrong_use_is_one_line(script, flags, message):
    code, out, err = script(*flags)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert message in line


def test_the_script_finds_its_own_modules():
    command = [sys.executable, reference.__file__, *TINY, "--what", "reference"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "eager step with its loader" in done.stdout

"""What a library raises where memory does not suffice, really asked for, becomes one line."""

import numpy as np
import pytest
import torch

from dcdc.cli.faults import exit_codes


@pytest.fixture
def told(capsys):
    def call(work) -> str:
        with pytest.raises(SystemExit) as stopped, exit_codes():
            work()
        assert stopped.value.code == 2
        line = capsys.readouterr().err
        assert line.startswith("dcdc: ")
        assert len(line.splitlines()) == 1
        return line

    return call


def deeper(level: int = 0) -> int:
    return deeper(level + 1)


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.empty(2**50),
        lambda: torch.nn.Linear(2**31, 2**20),
        lambda: torch.empty(2**40, 2**40),
        lambda: np.empty(2**55),
        lambda: bytearray(2**55),
    ],
    ids=["torch", "a layer", "more than can be counted", "numpy", "Python"],
)
def test_memory_that_does_not_suffice_is_told_with_what_to_lower(told, work):
    line = told(work)
    assert line.startswith("dcdc: memory does not suffice")
    assert "what was written before stays: lower --batch-size, --size or --clusters" in line


def test_the_amount_is_told_where_it_is_known(told):
    assert "(4503599627370496 bytes more were asked for)" in told(lambda: torch.empty(2**50))


def test_nesting_without_end_is_told(told):
    assert "nested too deep" in told(deeper)


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match="mat1 and mat2"), exit_codes():
        torch.ones(2, 3) @ torch.ones(2, 3)


@pytest.mark.gpu
def test_memory_of_a_gpu_that_does_not_suffice_is_told(told):
    line = told(lambda: torch.empty(2**42, device="cuda"))
    assert line.startswith("dcdc: the GPU's memory does not suffice (16384.00 GiB more were asked")


@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
def test_ctrl_c_before_training_says_that_nothing_was_written(
    dcdc, finished, tiny_file, tmp_path, monkeypatch, flags
):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dcdc.prepare.prepare_run.prepare_run", interrupted)
    run = finished if flags else tmp_path / "new"
    before = sorted(tmp_path.rglob("*"))
    code, out, err = dcdc("fit", tiny_file, "--clusters", "3", "--run", run, *flags)
    assert (code, out) == (130, "")
    assert err == "dcdc: interrupted before training began: no run was written\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_ctrl_c_after_training_says_how_to_go_on(dcdc, tiny_file, tiny_flags, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dcdc.run.training.write_results", interrupted)
    code, _, err = dcdc("fit", tiny_file, *tiny_flags, "--quiet", "--run", "run")
    assert code == 130
    assert err == "dcdc: interrupted; go on with: dcdc fit --run run --resume\n"


def test_ctrl_c_elsewhere_has_a_word(dcdc, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dcdc.cli.recipe_lines.length", interrupted)
    code, _, err = dcdc("presets")
    assert (code, err) == (130, "dcdc: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "a", "b\x1b[31m"), r"b\x1b[31m"),
        (("fit", "a", "--se\u202eed"), r"No such option: --se\u202eed"),
        (("no\x1b]0;owned\x07verb",), r"no\x1b]0;owned\x07verb"),
        (("fit", "a", "--seed", "x"), "Invalid value for '--seed'"),
        (("predict",), "see dcdc predict -h"),
    ],
)
def test_what_is_mistyped_is_one_line_that_steers_no_terminal(dcdc, arguments, told):
    code, out, err = dcdc(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("dcdc: ")
    assert told in err
    assert not {"\x1b", "\x07", "\u202e"} & set(err)


def test_no_word_at_all_is_answered_with_help(dcdc):
    code, out, err = dcdc()
    assert code == 2
    assert "Usage: dcdc" in out + err
    assert dcdc("--help")[0] == 0

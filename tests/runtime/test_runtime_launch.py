import os

import pytest

from dcdc.errors import InputError
from dcdc.runtime.launch import DEFAULT_TIMEOUT, Launch, job_of, read_launch

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "TORCHELASTIC_RESTART_COUNT": "1",
    "TORCHELASTIC_MAX_RESTARTS": "3",
    "TORCHELASTIC_RUN_ID": "photos",
}


def test_without_torchrun_a_process_is_alone():
    assert read_launch() == Launch()
    assert not Launch().is_several


def test_what_torchrun_says(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert read_launch() == Launch(
        rank=3, size=4, local_rank=1, local_size=2, restarts=1, restarts_left=2, job="photos"
    )
    assert read_launch().is_several
    assert read_launch().timeout == DEFAULT_TIMEOUT
    monkeypatch.setenv("DCDC_TIMEOUT", "30")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert read_launch().timeout == 30
    assert read_launch().job is None
    assert job_of(Launch(job="photos")) == "photos"
    assert f"by process {os.getppid()} of" in job_of(read_launch())
    monkeypatch.delenv("RANK")
    assert job_of(read_launch()) is None


def test_one_process_is_several_only_if_forced(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not read_launch().is_several
    monkeypatch.setenv("DCDC_FORCE_COLLECTIVES", "1")
    assert read_launch().is_several


@pytest.mark.parametrize(
    ("name", "value"),
    [("RANK", "first"), ("WORLD_SIZE", "-2"), ("DCDC_TIMEOUT", "0"), ("DCDC_TIMEOUT", "soon")],
)
def test_what_is_no_number_is_named(monkeypatch, name, value):
    for known, text in TORCHRUN.items():
        monkeypatch.setenv(known, text)
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"{name} is '{value}'"):
        read_launch()

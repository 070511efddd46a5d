import sys

import pytest

from dcdc.cli import main


@pytest.fixture
def dcdc(monkeypatch, capfd, tmp_path):
    """Runs a command in this process, in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dcdc", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capfd.readouterr()

    return call


@pytest.fixture
def finished(dcdc, tiny_file, tiny_flags, tmp_path):
    """A finished run."""
    code, _, err = dcdc("fit", tiny_file, "--run", "runs/tiny", "--quiet", *tiny_flags)
    assert code == 0, err
    return tmp_path / "runs" / "tiny"

import io
import os
import pty
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

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
def on_terminal():
    """What a command shows on a real pseudo-terminal, as a person has it."""

    def shown_by(*arguments: object, columns: int = 200) -> str:
        reader, writer = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "dcdc", *map(str, arguments)],
            stderr=writer,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm", "COLUMNS": str(columns)},
        )
        os.close(writer)
        shown = b""
        while True:
            try:
                piece = os.read(reader, 65536)
            except OSError:  # how the end of a terminal is told
                break
            if not piece:
                break
            shown += piece
        os.close(reader)
        assert process.wait() == 0
        return shown.decode(errors="replace")

    return shown_by


@pytest.fixture(scope="session")
def finished_once(tiny_file, tiny_flags, tmp_path_factory):
    """Training and drawing take seconds, and most tests only want to begin after them."""
    run = tmp_path_factory.mktemp("finished") / "tiny"
    command = [sys.executable, "-X", "importtime", "-m", "dcdc"]
    command += ["fit", tiny_file, "--run", run, "--quiet", *tiny_flags]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (run.parent / "imports").write_text(done.stderr)
    return run


@pytest.fixture
def finished(finished_once, tmp_path):
    """A finished run, to do with as one likes."""
    return shutil.copytree(finished_once, tmp_path / "runs" / "tiny")


@pytest.fixture
def write_hub(tiny_set, tmp_path_factory):
    """The tiny images as Parquet, with label columns as one likes: the file."""

    def write(**labels: object) -> str:
        rows = []
        for image in tiny_set.images:
            buffer = io.BytesIO()
            Image.fromarray(image[..., 0]).save(buffer, "png")
            rows.append(buffer.getvalue())
        file = tmp_path_factory.mktemp("hub") / "hub.parquet"
        pq.write_table(pa.table({"image": rows, **labels}), file)
        return str(file)

    return write

"""Several processes on this machine, as torchrun would start them, without torchrun's own time."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(rank: int, size: int, port: int, **more: str) -> dict[str, str]:
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    fixed = {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", "DCDC_TIMEOUT": "60"}
    return os.environ | fixed | {key: str(value) for key, value in own.items()} | more


def start(arguments: Sequence[str], size: int, **more: str) -> list[subprocess.Popen]:
    port = free_port()
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            env=environment(rank, size, port, **more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


def finish(processes: Sequence[subprocess.Popen], seconds: float = 180) -> list[tuple[str, str]]:
    """What each wrote to stdout and stderr; every exit code must be 0."""
    said = [process.communicate(timeout=seconds) for process in processes]
    for process, (_, err) in zip(processes, said, strict=True):
        assert process.returncode == 0, err
    return said

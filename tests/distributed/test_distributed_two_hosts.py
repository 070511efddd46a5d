"""Two hosts, as network namespaces joined by a cable that can be cut."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from peers import finish, start
from test_distributed_faults import FLAGS, answer, epochs_done, history

HOSTS = {"dcdc-a": "10.77.41.1", "dcdc-b": "10.77.41.2"}
CABLE = {"dcdc-a": "dcdc-va", "dcdc-b": "dcdc-vb"}
TIMEOUT = 10


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)


@pytest.fixture
def cable() -> Iterator[None]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    try:
        for host in HOSTS:
            ip("netns", "add", host)
        ip("link", "add", CABLE["dcdc-a"], "type", "veth", "peer", "name", CABLE["dcdc-b"])
        for host, address in HOSTS.items():
            ip("link", "set", CABLE[host], "netns", host)
            ip("-n", host, "addr", "add", f"{address}/24", "dev", CABLE[host])
            ip("-n", host, "link", "set", CABLE[host], "up")
            ip("-n", host, "link", "set", "lo", "up")
    except (subprocess.CalledProcessError, OSError) as error:
        pytest.skip(f"this machine has no network namespaces: {error}")
    try:
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


def on_both(run: Path, source: Path, job: str, *more: str) -> list[subprocess.Popen]:
    def command(host: str) -> list[str]:
        launcher = ["--nnodes", "2", "--nproc-per-node", "1", "--local-addr", HOSTS[host]]
        launcher += ["--rdzv-backend", "c10d", "--rdzv-id", job, "--max-restarts", "0"]
        launcher += ["--rdzv-endpoint", f"{HOSTS['dcdc-a']}:29411"]
        # By its host name, the same in both namespaces, torchrun would not know its own address.
        launcher += ["--rdzv-conf", f"is_host={int(host == 'dcdc-a')}"]
        fit = ["-m", "dcdc", "fit", str(source), "--run-folder", str(run), *FLAGS, *more]
        inside = ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run"]
        return [*inside, *launcher, *fit]

    return [
        subprocess.Popen(
            command(host),
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "DCDC_TIMEOUT": str(TIMEOUT)}
            | {"GLOO_SOCKET_IFNAME": CABLE[host]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for host in HOSTS
    ]


def workers_of(agent: subprocess.Popen) -> list[int]:
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
    return [int(pid) for pid in children.read_text().split()] if children.exists() else []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_cut_cable_ends_the_job_and_a_resume_ends_as_if_it_had_held(tiny_file, tmp_path, cable):  # noqa: ARG001
    undisturbed, run = tmp_path / "undisturbed", tmp_path / "cut"
    finish(start(["-m", "dcdc", "fit", str(tiny_file), "--run", str(undisturbed), *FLAGS], 2))

    agents = on_both(run, tiny_file, "before")
    deadline = time.monotonic() + 90
    while epochs_done(run) < 4:
        assert all(agent.poll() is None for agent in agents), agents[0].communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    workers = [pid for agent in agents for pid in workers_of(agent)]
    assert len(workers) == 2
    ip("-n", "dcdc-a", "link", "set", CABLE["dcdc-a"], "down")
    cut = time.monotonic()
    while any(map(is_running, workers)):
        assert time.monotonic() - cut < TIMEOUT + 20  # the timeout, then who tells
        time.sleep(0.05)
    complaints = []
    for agent in agents:
        # torchrun itself would wait minutes for the store on the other side
        try:
            _, err = agent.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)
            _, err = agent.communicate()
        complaints.append([line for line in err.splitlines() if "dcdc: " in line])
    for rank, told in enumerate(complaints):
        assert len(told) == 1, complaints
        lost = f"process {1 - rank} of 2 was lost or did not answer within {TIMEOUT} s"
        assert lost in told[0]
        assert "start the same command again with --resume, and the run goes on after" in told[0]
    assert not (run / "metrics.json").exists()

    ip("-n", "dcdc-a", "link", "set", CABLE["dcdc-a"], "up")
    for agent in on_both(run, tiny_file, "after", "--resume"):
        _, err = agent.communicate(timeout=120)
        assert agent.returncode == 0, err
    assert answer(run) == answer(undisturbed)
    assert history(run) == history(undisturbed)

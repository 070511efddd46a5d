import os
import socket
import threading
import time

import numpy as np
import pytest
import torch

from dcdc.errors import InputError, PeerLostError
from dcdc.runtime.batch_share import BatchShare, sum_gradients
from dcdc.runtime.launch import Launch, may_tell
from dcdc.runtime.processes import ALONE, Processes, joined, lost_message, share, share_sizes


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 17, 18, 50])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_shares_cover_all_rows_once_in_order_and_differ_by_one_at_most(n_rows, size):
    rows = list(range(n_rows))
    shares = [rows[share(n_rows, rank, size)] for rank in range(size)]
    assert [row for own in shares for row in own] == rows
    assert [len(own) for own in shares] == share_sizes(n_rows, size)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.fixture
def address(monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))


@pytest.fixture
def to_itself(address):  # noqa: ARG001
    with joined(Launch(force=True, timeout=20), torch.device("cpu")) as processes:
        assert processes.joined
        yield processes


@pytest.fixture(params=["alone", "to itself"])
def processes(request):
    return ALONE if request.param == "alone" else request.getfixturevalue("to_itself")


def test_what_one_process_exchanges_is_its_own(processes):
    rows = torch.arange(6.0).view(3, 2)
    assert torch.equal(processes.all_gather(rows), rows[None])
    assert torch.equal(processes.all_gather_shares(rows, 3), rows)
    assert np.array_equal(processes.all_gather_arrays(rows.numpy(), 3), rows.numpy())
    assert processes.all_reduce_max(7) == 7
    assert processes.broadcast_bytes(b"some\0bytes") == b"some\0bytes"
    assert processes.broadcast_bytes(b"") == b""
    assert processes.broadcast_value(lambda: {"a": [1, None]}) == {"a": [1, None]}
    assert processes.with_barrier(lambda: "done") == "done"
    processes.broadcast([rows])
    processes.all_reduce_sum(rows)
    processes.require_same({"torch": "2"})
    assert rows[2, 1] == 5


def test_work_that_fails_is_not_hidden(processes):
    def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        processes.with_barrier(fail)


def test_long_work_gives_signs_of_life(to_itself, monkeypatch):
    signs = []
    told = torch.distributed.all_reduce
    monkeypatch.setattr(
        torch.distributed, "all_reduce", lambda *a, **k: (signs.append(1), told(*a, **k))
    )
    quick = Processes(
        Launch(force=True, timeout=0.2), joined=True, _control_group=to_itself._control_group
    )
    quick.with_barrier(lambda: time.sleep(0.5))
    assert len(signs) >= 5
    assert threading.active_count() < 10


def test_a_collective_that_fails_is_a_lost_process(to_itself):
    with pytest.raises(PeerLostError, match="within 20 s"), to_itself._asking(torch.zeros(1)):
        raise RuntimeError("[file.cc:3] Connection closed by peer [::1]:7")


def test_the_lost_one_is_named_where_it_can_only_be_one():
    assert lost_message(Launch(1, 2), "gone").startswith("process 0 of 2 was lost")
    assert lost_message(Launch(1, 4), "gone").startswith("one of the other 3 processes")


def test_processes_that_do_not_meet_say_where_to_look(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    with (
        pytest.raises(PeerLostError, match="2 processes did not find each other within 1 s"),
        joined(Launch(rank=1, size=2, timeout=1), torch.device("cpu")),
    ):
        pass


def test_a_fault_is_told_by_the_first_that_asks(address):  # noqa: ARG001
    """The first process keeps the store; a second asker of the same start is too late."""
    from dcdc.runtime.launch import meet

    held = meet(Launch(0, 2), 5)
    assert may_tell(Launch(0, 2))
    assert not may_tell(Launch(1, 2))
    assert may_tell(Launch(0, 2, restarts=1))  # another start, another fault
    del held


@pytest.mark.slow
def test_where_nobody_can_be_asked_one_of_each_host_tells(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setattr("dcdc.runtime.launch._SECONDS_TO_ASK", 1)
    monkeypatch.setattr("dcdc.runtime.launch._SECONDS_FOR_THE_FIRST", 0)
    assert may_tell(Launch(2, 4, local_rank=0))
    assert not may_tell(Launch(3, 4, local_rank=1))
    assert os.environ["MASTER_PORT"] == "1"


def two_of_three(n_images: int) -> BatchShare:
    return BatchShare(Processes(Launch(1, 3)), n_images)


def test_a_share_of_batches_takes_the_same_images_of_every_copy():
    share = two_of_three(7)  # 3, 2 and 2 images
    batches = torch.arange(14)[None].repeat(2, 1)  # 7 images and their 7 partners
    assert share.of(batches).tolist() == [[3, 4, 10, 11]] * 2
    assert share.n_own == 2
    images = torch.rand(4, 1, 8, 8)
    assert share.stand_in(images).shape == (14, 1, 8, 8)


def test_a_batch_smaller_than_the_processes_is_refused():
    with pytest.raises(InputError, match="2 images cannot be shared by 3 processes"):
        two_of_three(2)


def test_gathered_rows_have_their_gradient(to_itself):
    share = BatchShare(to_itself, 3)
    one = torch.rand(3, 2, requires_grad=True)
    three = torch.rand(9, 2, requires_grad=True)
    both = share.gather(one, three)
    assert torch.equal(both[0], one)
    assert torch.equal(both[1], three)
    torch.autograd.backward((both[1] ** 2).sum())
    torch.testing.assert_close(three.grad, 2 * three.detach())


def test_gradients_keep_their_layout_and_type(to_itself):
    flat = torch.rand(5)
    last = torch.rand(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    half = torch.rand(4).bfloat16()
    before = [tensor.clone() for tensor in (flat, last, half)]
    sum_gradients([flat, last, half], to_itself)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert all(torch.equal(a, b) for a, b in zip((flat, last, half), before, strict=True))

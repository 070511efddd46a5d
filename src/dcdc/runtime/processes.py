"""The processes that train together, as each of them sees the others.

Shapes: R processes, each with its share of N rows: contiguous, sizes differ by one at most.
"""

import gc
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from dcdc.errors import InputError, PeerLostError
from dcdc.runtime.launch import Launch, meet

Result = TypeVar("Result")
_HEARTBEATS = 4  # within a timeout, of a process that others wait for


def share(n_rows: int, rank: int, size: int) -> slice:
    """The first `n_rows % size` processes take one row more."""
    each, left = divmod(n_rows, size)
    start = rank * each + min(rank, left)
    return slice(start, start + each + (rank < left))


def share_sizes(n_rows: int, size: int) -> list[int]:
    """Largest first."""
    each, left = divmod(n_rows, size)
    return [each + 1] * left + [each] * (size - left)


@dataclass(frozen=True)
class Processes:
    """One process alone unless joined; alone, no method talks to anyone."""

    launch: Launch = field(default_factory=Launch)
    joined: bool = False
    _control_group: Any = field(default=None, repr=False, compare=False)
    """A gloo group for control messages: heartbeats, while the first group's next work waits."""

    @property
    def rank(self) -> int:
        return self.launch.rank

    @property
    def size(self) -> int:
        return self.launch.size

    @property
    def is_first(self) -> bool:
        """The one that writes, prints and draws."""
        return self.rank == 0

    @property
    def is_first_of_host(self) -> bool:
        return self.launch.local_rank == 0

    def share(self, n_rows: int) -> slice:
        return share(n_rows, self.rank, self.size)

    def all_reduce_sum(self, tensor: Tensor) -> None:
        if self.joined:
            with self._asking(tensor):
                dist.all_reduce(tensor)

    def all_gather(self, tensor: Tensor) -> Tensor:
        """R x the tensor's shape, which is the same everywhere; no gradient."""
        if not self.joined:
            return tensor[None]
        gathered = tensor.new_empty(self.size * tensor.numel())
        with self._asking(tensor):
            _all_gather(gathered, tensor.contiguous().view(-1))
        return gathered.view(self.size, *tensor.shape)

    def all_gather_shares(self, own: Tensor, n_rows: int) -> Tensor:
        """N x ... in order, from everyone's share of the rows; no gradient."""
        if not self.joined:
            return own
        sizes = share_sizes(n_rows, self.size)
        if sizes[0] == sizes[-1]:
            return self.all_gather(own).flatten(0, 1)
        padded = own.new_zeros((sizes[0], *own.shape[1:]))
        padded[: len(own)] = own
        parts = self.all_gather(padded)
        return torch.cat([part[:n] for part, n in zip(parts, sizes, strict=True)])

    def all_gather_arrays(self, own: np.ndarray, n_rows: int) -> np.ndarray:
        """The same for arrays, on the host."""
        if not self.joined:
            return own
        return self.all_gather_shares(torch.from_numpy(np.ascontiguousarray(own)), n_rows).numpy()

    def all_gather_bytes(self, own: bytes) -> list[bytes]:
        """Everyone's, in the order of their ranks."""
        if not self.joined:
            return [own]
        lengths = self.all_gather(torch.tensor([len(own)])).flatten().tolist()
        padded = torch.zeros(max(1, *lengths), dtype=torch.uint8)
        padded[: len(own)] = (
            torch.frombuffer(bytearray(own), dtype=torch.uint8) if own else padded[:0]
        )
        parts = self.all_gather(padded).numpy()
        return [part[:n].tobytes() for part, n in zip(parts, lengths, strict=True)]

    def all_reduce_max(self, value: int) -> int:
        """Of everyone's values, on the host."""
        if not self.joined:
            return value
        return int(self.all_gather(torch.tensor([value])).max())

    def broadcast_bytes(self, content: bytes | None) -> bytes:
        """What the first process gives, at every process; others give None."""
        if not self.joined:
            assert content is not None
            return content
        length = torch.tensor([len(content or b"")])
        with self._asking(length):
            dist.broadcast(length, src=0)
            payload = torch.empty(int(length), dtype=torch.uint8)
            if self.is_first and content:
                payload.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
            if len(payload):
                dist.broadcast(payload, src=0)
        return payload.numpy().tobytes()

    def broadcast_value(self, decide: Callable[[], Any]) -> Any:
        """Plain values (fit for JSON) that the first process finds, however long it takes."""
        if not self.joined:
            return decide()
        found = self.with_barrier(decide if self.is_first else lambda: None)
        return json.loads(
            self.broadcast_bytes(json.dumps(found).encode() if self.is_first else None)
        )

    def broadcast(self, tensors: list[Tensor]) -> None:
        """The first process's values into everyone's tensors."""
        if self.joined:
            for tensor in tensors:
                with self._asking(tensor):
                    dist.broadcast(tensor.detach(), src=0)

    def with_barrier(self, work: Callable[[], Result]) -> Result:
        """Every process calls it with work of its own, however long, and a barrier follows it.

        Processes exchange heartbeats while they work and wait, so that a lost one is found within
        the timeout all the same.
        """
        if not self.joined:
            return work()
        done = threading.Event()
        faults: list[BaseException] = []
        heartbeats = threading.Thread(
            target=self._exchange_heartbeats, args=(done, faults), daemon=True
        )
        heartbeats.start()
        try:
            result = work()
        except BaseException as fault:  # ends this process: the others hear it fall silent
            faults.append(fault)
            raise
        finally:
            done.set()
        heartbeats.join()
        if faults:
            raise faults[0]
        return result

    def _exchange_heartbeats(self, done: threading.Event, faults: list[BaseException]) -> None:
        try:
            while not (done.is_set() and faults):
                still = torch.tensor([0 if done.is_set() else 1])
                with self._asking(still):
                    dist.all_reduce(still, dist.ReduceOp.MAX, group=self._control_group)
                if not still:
                    return
                done.wait(self.launch.timeout / _HEARTBEATS)
        except BaseException as fault:
            faults.append(fault)

    def require_same(self, facts: Mapping[str, str]) -> None:
        """Refuses processes that would compute something else than the first one."""
        if not self.joined:
            return
        wanted = json.loads(self.broadcast_bytes(json.dumps(dict(facts)).encode()))
        for name, value in facts.items():
            if wanted.get(name) != value:
                raise InputError(
                    f"process {self.rank} has {name} {value}, process 0 has {wanted.get(name)}: "
                    "start all with the same command, code and images"
                )

    @contextmanager
    def _asking(self, tensor: Tensor) -> Iterator[None]:
        """A collective that fails means that a process is gone, but where a graph is captured."""
        try:
            yield
        except RuntimeError as error:
            if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
                raise
            raise PeerLostError(lost_message(self.launch, _reason(error))) from error


ALONE = Processes()


@contextmanager
def joined(launch: Launch, device: torch.device) -> Iterator[Processes]:
    """All processes of the launch, for the block; `device` is where this one computes."""
    if not launch.is_several:
        yield Processes(launch)
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    timeout = timedelta(seconds=launch.timeout)
    try:
        dist.init_process_group(
            backend,
            store=meet(launch, launch.timeout),
            rank=launch.rank,
            world_size=launch.size,
            timeout=timeout,
        )
        control_group = dist.new_group(backend="gloo", timeout=timeout)
    except (RuntimeError, ValueError) as error:
        raise PeerLostError(
            f"the {launch.size} processes did not find each other within {launch.timeout:g} s "
            f"({_reason(error)}): check --rdzv-endpoint, the network between the hosts, and that "
            "every host was started"
        ) from error
    yield Processes(launch, joined=True, _control_group=control_group)
    # After a fault the process ends without it: leaving a group waits for the others. A captured
    # graph holds on to it, too.
    gc.collect()
    dist.destroy_process_group()


def lost_message(launch: Launch, reason: str) -> str:
    if launch.size == 2:
        who = f"process {1 - launch.rank} of 2"
    else:
        who = f"one of the other {launch.size - 1} processes"
    return f"{who} was lost or did not answer within {launch.timeout:g} s ({reason})"


def _reason(error: Exception) -> str:
    """The last part of what gloo says: before it stand files and lines of its own source."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text.rpartition("] ")[2].rstrip(". ") if text.startswith("[") else text


def _all_gather(into: Tensor, own: Tensor) -> None:
    # Renamed in torch 2.13; both put one tensor after the other.
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gather(into, own)

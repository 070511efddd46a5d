"""A verb as several processes do it together, where torchrun started it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from dcdc.runtime.launch import read_launch

if TYPE_CHECKING:
    from dcdc.runtime.processes import Processes

Result = TypeVar("Result")


@contextmanager
def joined_processes(device: str) -> "Iterator[Processes]":
    from dcdc.runtime.device import take_device
    from dcdc.runtime.processes import Processes, joined

    launch = read_launch()
    if not launch.is_several:
        yield Processes(launch)
        return
    with joined(launch, take_device(device, launch.local_rank)) as processes:
        yield processes


def in_turn(processes: "Processes", read: Callable[[], Result]) -> Result:
    """The first process of a host reads, and the others find what it has cached."""
    if not processes.joined:
        return read()
    found = processes.with_barrier(read if processes.is_first_of_host else lambda: None)
    return processes.with_barrier(lambda: read() if found is None else found)

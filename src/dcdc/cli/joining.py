"""A verb as several processes do it together, where torchrun started it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from dcdc.config import RunConfig, from_mapping, to_mapping
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
    found = processes.all_wait_for(read if processes.is_first_of_host else lambda: None)
    return processes.all_wait_for(lambda: read() if found is None else found)


def config_of_first(processes: "Processes", decide: Callable[[], RunConfig]) -> RunConfig:
    if not processes.joined:
        return decide()
    return from_mapping(processes.decided_by_first(lambda: to_mapping(decide())))

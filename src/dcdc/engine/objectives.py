"""What a step minimises: which copies it draws, what the network makes of them, the loss.

Shapes: B images, r perturbed copies of each, K clusters of a head.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from dcdc.engine.views import Apply, Copy, apply_of
from dcdc.networks import ClusteringNetwork, copy_groups

Autocast = Callable[[], AbstractContextManager[object]]
Assign = dict[str, Tensor]
"""By head: images x K."""
Passes = Callable[[ClusteringNetwork, Tensor, Tensor, Sequence[str]], tuple[Assign, Assign]]
Function = Callable[..., Any]
Terms = dict[str, Tensor]
Gather = Callable[..., tuple[Tensor, ...]]
"""The rows of this process's share of a batch, a copy after the other, to those of all of it."""


class Objective(Protocol):
    """Its parts are apart because they are fast in different ways: draws on a random generator,
    copies compiled, the network as the optimiser knows it."""

    def see(self, indices: Tensor) -> None:
        """Which rows of the store the next copies are of, as the step was given them."""

    def draw(self, images: Tensor, generator: Generator) -> Any:
        """Every random number that the copies of `images` (uint8, B x C x H x W) need."""

    def part(self, draw: Any, rows: slice) -> Any:
        """Of a draw for a whole batch, what some of its images need."""

    def copies(self, images: Tensor, draw: Any) -> tuple[Tensor, ...]:
        """Pure."""

    def loss(
        self, network: ClusteringNetwork, copies: tuple[Tensor, ...], heads: Sequence[str]
    ) -> tuple[Tensor, Terms]:
        """The total, with a gradient, and its parts by name."""


def as_it_is(function: Function) -> Function:
    return function


def own_rows(*parts: Tensor) -> tuple[Tensor, ...]:
    """Where the share is the whole batch."""
    return parts


def two_passes(
    network: ClusteringNetwork, original: Tensor, perturbed: Tensor, heads: Sequence[str]
) -> tuple[Assign, Assign]:
    """One after the other, as the paper's authors have it: batch-norm statistics stay apart."""
    return network(original, heads).assign, network(perturbed, heads).assign


def one_pass(
    network: ClusteringNetwork, original: Tensor, perturbed: Tensor, heads: Sequence[str]
) -> tuple[Assign, Assign]:
    """The same meaning in one batch, with statistics per copy group."""
    sizes = (len(original), len(perturbed))
    with copy_groups(network, sizes):
        assign = network(torch.cat([original, perturbed]), heads).assign
    parts = {head: torch.split(rows, list(sizes)) for head, rows in assign.items()}
    return (
        {head: part[0] for head, part in parts.items()},
        {head: part[1] for head, part in parts.items()},
    )


@dataclass(frozen=True)
class StepTools:
    """How a step of any objective is carried out on this machine."""

    autocast: Autocast
    passes: Passes = two_passes
    gather: Gather = own_rows
    applied: Callable[[Copy], Apply] = apply_of
    """Gives what applies a copy's draws: its own `apply`, or a faster version."""
    compiled: Callable[[Function], Function] = as_it_is
    """May give back a faster version of a pure function."""

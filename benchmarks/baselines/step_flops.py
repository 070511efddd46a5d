"""The arithmetic of a step: all products and sums of its network, both ways."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from baselines.batches import copies_shape
from baselines.plain_network import build_plain_network
from dcdc.bench.steps import Case


def step_flops(case: Case) -> int:
    """For all copies of a batch and the cluster head, counted without computing anything."""
    network = build_plain_network(case.config).to("meta")
    with FlopCounterMode(display=False) as counter:
        torch.autograd.backward(network(torch.empty(copies_shape(case), device="meta")).sum())
    return int(counter.get_total_flops())

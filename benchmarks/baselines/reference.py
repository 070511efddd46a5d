"""The reference's way to run a preset: loaders of Pillow copies, plain eager float32 steps.

Two passes in NCHW, the cluster head alone, Adam; cuDNN may choose its fastest convolutions.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor

from baselines.batches import batch_size, copies_shape, n_copies
from baselines.pil_pipeline import PilCopies
from baselines.plain_network import build_plain_network
from baselines.reference_loader import PREFETCH, CopiesDataset, open_loader
from dcdc.bench.steps import Case
from dcdc.bench.timing import Measured, Trial, peak_bytes, start_peak, time_calls
from dcdc.networks import CLUSTER_HEAD
from dcdc.phases.heads import heads_of
from dcdc.runtime.device import choose_fastest_convolutions

STEP_ALONE = "eager step, no loading"
LOADER_ALONE = "loader, no step"
STEP_AND_LOADER = "eager step with its loader"
ReferenceStep = Callable[[list[Tensor]], Tensor]
"""From 1 + r batches of normalised copies, wherever they are, to the loss."""


def reference_trials(
    case: Case, device: torch.device, seconds: float, n_workers: int
) -> Generator[Trial, None, None]:
    start_peak(device)
    choose_fastest_convolutions(device)
    step = build_reference_step(case, device)
    yield Trial(STEP_ALONE, partial(_time_step, case, step, device, seconds))
    dataset = CopiesDataset(case.image_set.images, pil_copies(case))
    with open_loader(dataset, batch_size(case), n_workers, device) as batches:
        timed = partial(_time_loader, case, batches, device, seconds, n_workers)
        yield Trial(LOADER_ALONE, partial(timed, lambda _copies: None))
        yield Trial(STEP_AND_LOADER, partial(timed, step))


def pil_copies(case: Case) -> PilCopies:
    config = case.config
    assert config.data.size is not None
    assert config.network.mean is not None
    assert config.network.std is not None
    return PilCopies(
        size=config.data.size,
        n_repeats=heads_of(config).n_repeats,
        mean=config.network.mean,
        std=config.network.std,
        **asdict(config.augment),
    )


def build_reference_step(case: Case, device: torch.device) -> ReferenceStep:
    network = build_plain_network(case.config).to(device)
    heads = heads_of(case.config)
    optimiser = torch.optim.Adam(network.parameters(), lr=heads.learning_rate)
    loss_of = heads.loss_function()

    def step(copies: list[Tensor]) -> Tensor:
        original, *perturbed = (copy.to(device, non_blocking=True) for copy in copies)
        loss = loss_of(network(original), network(torch.cat(perturbed))).total
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        return loss.detach()

    return step


def _time_step(case: Case, step: ReferenceStep, device: torch.device, seconds: float) -> Measured:
    copies = list(torch.split(torch.randn(copies_shape(case), device=device), batch_size(case)))
    timing = time_calls(lambda: step(copies), device, seconds)
    return Measured(
        timing,
        images=batch_size(case),
        copies=n_copies(case),
        peak_gpu_bytes=peak_bytes(device),
        details={"heads": [CLUSTER_HEAD], "precision": "float32"},
    )


def _time_loader(
    case: Case,
    batches: Iterator[list[Tensor]],
    device: torch.device,
    seconds: float,
    n_workers: int,
    use: Callable[[list[Tensor]], object],
) -> Measured:
    for _ in range(PREFETCH * n_workers):  # what lies ready would come in no time
        _next(batches)
    # On a CPU, where a batch takes seconds, workers come one by one all the same.
    burst = n_workers if device.type == "cuda" else 1
    timing = time_calls(lambda: use(_next(batches)), device, seconds, burst)
    return Measured(
        timing, images=batch_size(case), copies=n_copies(case), details={"n_workers": n_workers}
    )


def _next(batches: Iterator[list[Tensor]]) -> list[Tensor]:
    try:
        return next(batches)
    except StopIteration:  # they have no end
        raise RuntimeError("the loader's workers have stopped") from None

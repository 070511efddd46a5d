"""The paper's perturbations of 32-pixel images alone, eager and as a CUDA graph."""

from collections.abc import Generator
from functools import partial

import torch

from dcdc.bench.timing import CapturedCall, Measured, Trial, time_calls
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import original_copy, perturbed_copy

PRESET = "cifar10-paper"
BATCH_SIZES = (50, 1000)


def perturbation_trials(device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    for batch_size in BATCH_SIZES:
        for way in ("eager", "captured"):
            name = trial_name(batch_size, way)
            yield Trial(name, partial(_measure, batch_size, way == "captured", device, seconds))


def trial_name(batch_size: int, way: str) -> str:
    return f"{batch_size} x {heads_of(preset(PRESET)).n_repeats} copies, {way}"


def _measure(batch_size: int, captured: bool, device: torch.device, seconds: float) -> Measured:
    config = preset(PRESET)
    n_repeats = heads_of(config).n_repeats
    original, perturbed = original_copy(config), perturbed_copy(config, n_repeats)
    side = original.size
    images = torch.randint(
        0, 256, (batch_size, 3, side, side), dtype=torch.uint8, device=device
    ).contiguous(memory_format=torch.channels_last)
    generator = torch.Generator(device=device).manual_seed(0)

    def both_copies() -> None:
        original(images, generator)
        perturbed(images, generator)

    call = CapturedCall(both_copies, device, generator) if captured else both_copies
    return Measured(
        time_calls(call, device, seconds),
        images=batch_size,
        copies=batch_size * (1 + n_repeats),
        details={"side": side, "n_repeats": n_repeats},
    )

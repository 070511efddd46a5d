"""The original and the perturbed copies of images, as a config asks for them."""

from dataclasses import asdict

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config import RunConfig


def build_original_copy(config: RunConfig) -> OriginalCopy:
    assert config.data.size is not None
    return OriginalCopy(config.data.size, config.augment.resize_to)


def build_perturbed_copy(config: RunConfig, n_repeats: int | None = None) -> PerturbedCopy:
    perturbations = asdict(config.augment)
    del perturbations["resize_to"]  # the original copy's
    return PerturbedCopy(n_repeats=n_repeats or config.train.n_repeats, **perturbations)

"""A batch as the reference has it: every image, and its perturbed repeats."""

from dcdc.bench.steps import Case
from dcdc.phases.heads import heads_of
from dcdc.prepare.resolve import batch_sizes


def batch_size(case: Case) -> int:
    return batch_sizes(case.config)["heads"]


def n_copies(case: Case) -> int:
    return batch_size(case) * (1 + heads_of(case.config).n_repeats)


def image_shape(case: Case) -> tuple[int, int, int]:
    """C, H, W."""
    height, width, channels = case.image_set.image_shape
    return channels, height, width


def copies_shape(case: Case) -> tuple[int, int, int, int]:
    return n_copies(case), *image_shape(case)

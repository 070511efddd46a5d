"""A config's augmentation reaches both copies, each its own part."""

from dcdc.config import AugmentConfig, RunConfig, with_values
from dcdc.copies_from_config import build_original_copy, build_perturbed_copy


def test_only_the_original_copy_is_resized():
    config = with_values(RunConfig(), {"data.size": 32, "augment.resize_to": 40})
    copy = build_original_copy(config)
    assert (copy.size, copy.resize_to) == (32, 40)
    assert not hasattr(build_perturbed_copy(config), "resize_to")


def test_a_phase_may_ask_for_another_number_of_perturbed_copies():
    config = with_values(RunConfig(), {"train.n_repeats": 3, "augment.grey": 0.25})
    assert build_perturbed_copy(config).n_repeats == 3
    assert build_perturbed_copy(config, n_repeats=1).n_repeats == 1
    assert build_perturbed_copy(config).grey == config.augment.grey != AugmentConfig().grey

"""A config's augmentation reaches both copies, each its own part."""

from dcdc.config import AugmentConfig, RunConfig, with_values
from dcdc.prepare.resolve import original_copy, perturbed_copy


def test_only_the_original_copy_is_resized():
    config = with_values(RunConfig(), {"data.size": 32, "augment.resize_to": 40})
    copy = original_copy(config)
    assert (copy.size, copy.resize_to) == (32, 40)
    assert not hasattr(perturbed_copy(config, 1), "resize_to")


def test_each_phase_asks_for_its_own_number_of_perturbed_copies():
    config = with_values(RunConfig(), {"augment.grey": 0.25})
    assert perturbed_copy(config, 3).n_repeats == 3
    assert perturbed_copy(config, 1).n_repeats == 1
    assert perturbed_copy(config, 3).grey == config.augment.grey != AugmentConfig().grey

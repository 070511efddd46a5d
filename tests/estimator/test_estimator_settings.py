import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.estimator.settings import in_python_words, restart_seed, seed_of


def test_an_integer_is_the_seed_itself():
    assert seed_of(2**40) == 2**40
    assert seed_of(np.int64(7)) == 7


def test_a_random_state_draws_a_seed_and_moves_on():
    state = np.random.RandomState(0)
    first, second = seed_of(state), seed_of(state)
    assert first != second
    assert seed_of(np.random.RandomState(0)) == first
    np.random.seed(3)
    drawn = seed_of(None)
    np.random.seed(3)
    assert seed_of(None) == drawn


def test_the_first_restart_is_the_only_one_of_a_single_training():
    seeds = [restart_seed(5, number) for number in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("5 images cannot fill 9 clusters: lower --clusters", "lower n_clusters"),
        ("train.epochs = 0 must be at least 1 (--epochs)", "must be at least 1$"),
        ("try a lower --set train.learning_rate (now 1)", r'lower settings\["train.learning_rate'),
        ("use --device auto or cpu", 'use device="auto" or cpu'),
        ("repair or remove it, or use --on-bad skip", "repair or remove it$"),
    ],
)
def test_faults_name_parameters_instead_of_flags(said, heard):
    with pytest.raises(InputError, match=heard), in_python_words():
        raise InputError(said)

"""scikit-learn's own contract for estimators, in full: none of its checks is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dcdc import DCDC

# As short as a training can be; the checks fit some 150 times.
TINY = DCDC(
    n_clusters=2, epochs=2, device="cpu", settings={"train.threads": 1, "network.sub_heads": 2}
)


@parametrize_with_checks([TINY], expected_failed_checks=lambda _: {})
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)

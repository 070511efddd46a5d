import pytest
import torch

from dcdc.engine.terms import EpochTerms
from dcdc.errors import TrainingError


def collected(*steps: dict[str, float]) -> EpochTerms:
    terms = EpochTerms()
    for step in steps:
        terms.add({name: torch.tensor(value) for name, value in step.items()})
    return terms


def test_each_term_is_averaged_over_the_steps_that_had_it():
    terms = collected({"loss": 1.0, "a": 1.0}, {"loss": 2.0, "a": 3.0}, {"loss": 6.0, "b": 5.0})
    assert terms.means() == {"loss": 3.0, "a": 2.0, "b": 5.0}
    terms.require_finite(1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_the_term_that_went_wrong_is_named(bad):
    terms = collected(
        {"loss": 1.0, "c/sample": 1.0, "c/class": 1.0},
        {"loss": bad, "c/sample": bad, "c/class": 1.0},
        {"loss": 1.0, "c/sample": 1.0, "c/class": 1.0},
    )
    with pytest.raises(TrainingError, match=r"epoch 7 \(c/sample\)"):
        terms.require_finite(7)


def test_when_every_term_is_bad_the_weights_are_to_blame():
    nan = float("nan")
    with pytest.raises(TrainingError, match="weights themselves have diverged"):
        collected({"loss": nan, "c/sample": nan, "c/class": nan}).require_finite(2)

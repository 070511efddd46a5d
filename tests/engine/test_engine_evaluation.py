import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.engine.trained_model import TrainedModel
from dcdc.run import run
from dcdc.run_folder import RunFolder


@pytest.fixture
def looks(monkeypatch):
    """Every time that all images are answered."""
    found, answer = [], TrainedModel.assign_store

    def assign_store(model, store):
        found.append(model)
        return answer(model, store)

    monkeypatch.setattr(TrainedModel, "assign_store", assign_store)
    return found


def test_the_answers_of_the_last_epoch_are_those_of_the_run(tiny_config, tiny_set, looks):
    config = with_values(tiny_config, {"train.evaluate_every": 2, "heads.epochs": 5})
    result = run(config, tiny_set)
    assert len(looks) == 3  # after epochs 2, 4 and 5
    anew = result.model.assign(tiny_set).probabilities
    np.testing.assert_array_equal(result.assigned.probabilities, anew)


def test_who_resumes_a_run_that_is_done_looks_again(tiny_config, tiny_set, looks, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    first = run(tiny_config, tiny_set, folder=folder)
    del looks[:]
    again = run(tiny_config, tiny_set, folder=folder, resume=True)
    assert len(looks) == 1
    np.testing.assert_array_equal(again.assigned.probabilities, first.assigned.probabilities)

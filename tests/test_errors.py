"""Errors have parts, and each entry point says them in one line with its own words."""

import pickle

import pytest

from dcdc.cli.words import COMMAND_LINE
from dcdc.errors import PLAIN, InputError, TrainingError, fill
from dcdc.estimator.words import PYTHON, in_python_words

TOO_FEW = InputError("must be at least 2", parameter="n_clusters", value=1)
TOO_COLD = InputError("must be above 0", parameter="heads.temperature", value=-1.0)
TOO_MANY = InputError(
    "5 images cannot fill 9 clusters", remedy="lower {n_clusters} or {self_label.epochs}"
)
NAMED = InputError(
    "is not one of auto, cpu", parameter="train.device", value="tpu", remedy="drop {train.device}"
)
UNREADABLE = InputError(
    "a.jpg cannot be read", remedy=("repair it", "use {on_bad=skip}", "use {train.device=cpu}")
)
PLACE = InputError("there is no phase contrast", parameter="contrast.epochs")


def test_an_error_keeps_its_parts():
    assert (NAMED.problem, NAMED.parameter, NAMED.value) == (
        "is not one of auto, cpu",
        "train.device",
        "tpu",
    )
    assert NAMED.remedy == ("drop {train.device}",)
    assert UNREADABLE.remedy == ("repair it", "use {on_bad=skip}", "use {train.device=cpu}")
    plain = InputError("no such file")
    assert (plain.parameter, plain.value, plain.remedy) == (None, None, ())
    assert isinstance(NAMED, ValueError)


@pytest.mark.parametrize(
    ("error", "plain", "command_line", "python"),
    [
        (InputError("no such file"), *["no such file"] * 3),
        (
            TOO_FEW,
            "n_clusters = 1 must be at least 2",
            "--clusters 1 must be at least 2",
            "n_clusters=1 must be at least 2",
        ),
        (
            TOO_COLD,
            "heads.temperature = -1.0 must be above 0",
            "--set heads.temperature=-1.0 must be above 0",
            'settings["heads.temperature"]=-1.0 must be above 0',
        ),
        (
            TOO_MANY,
            "5 images cannot fill 9 clusters: lower n_clusters or self_label.epochs",
            "5 images cannot fill 9 clusters: lower --clusters or --set self_label.epochs",
            '5 images cannot fill 9 clusters: lower n_clusters or settings["self_label.epochs"]',
        ),
        (
            NAMED,
            "train.device = 'tpu' is not one of auto, cpu: drop train.device",
            "--device tpu is not one of auto, cpu: drop --device",
            "device='tpu' is not one of auto, cpu: drop device",
        ),
        (
            UNREADABLE,
            "a.jpg cannot be read: repair it, use on_bad = 'skip', or use train.device = 'cpu'",
            "a.jpg cannot be read: repair it, use --on-bad skip, or use --device cpu",
            # a way that an estimator does not have is left out
            "a.jpg cannot be read: repair it, or use device='cpu'",
        ),
        (
            InputError("photos exists", remedy="choose another by {run}"),
            "photos exists: choose another by run",
            "photos exists: choose another by --run",
            "photos exists",
        ),
        (
            InputError("must be a folder", parameter="out", value="photos"),
            "out = 'photos' must be a folder",
            "--out photos must be a folder",
            "out = 'photos' must be a folder",
        ),
        (PLACE, *["there is no phase contrast"] * 3),
        (
            InputError("must be text", parameter="phases", value=None),
            "phases = None must be text",
            "--set phases=None must be text",
            'settings["phases"]=None must be text',
        ),
        (
            TrainingError("the loss is not finite", remedy="lower {heads.learning_rate}"),
            "the loss is not finite; lower heads.learning_rate",
            "the loss is not finite; lower --set heads.learning_rate",
            'the loss is not finite; lower settings["heads.learning_rate"]',
        ),
        (TrainingError("the loss is not finite"), *["the loss is not finite"] * 3),
    ],
)
def test_each_face_names_parameters_as_its_callers_do(error, plain, command_line, python):
    assert str(error) == error.told(PLAIN) == plain
    assert error.told(COMMAND_LINE) == command_line
    assert error.told(PYTHON) == python


@pytest.mark.parametrize(
    ("key", "flag", "parameter"),
    [
        ("n_clusters", "--clusters", "n_clusters"),
        ("heads.epochs", "--epochs", "epochs"),
        ("heads.batch_size", "--batch-size", "batch_size"),
        ("train.device", "--device", "device"),
        ("train.seed", "--seed", "random_state"),
        ("heads-2.epochs", "--set heads-2.epochs", 'settings["heads-2.epochs"]'),
    ],
)
def test_what_has_a_flag_or_parameter_of_its_own_is_called_by_it(key, flag, parameter):
    assert COMMAND_LINE.name(key) == flag
    assert PYTHON.name(key) == parameter


def test_braces_of_a_value_are_no_parameter():
    error = InputError("phases: {'epochs': 3} is no table", parameter="phases", value={"a": 1})
    assert str(error) == "phases = {'a': 1} phases: {'epochs': 3} is no table"
    assert fill("write {{this}} by {phases}", PLAIN) == "write {this} by phases"


@pytest.mark.parametrize(
    "error",
    [TOO_FEW, TOO_MANY, NAMED, UNREADABLE, PLACE, InputError("is", parameter="a", value=None)],
)
def test_an_error_travels_between_processes_whole(error):
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is InputError
    for part in ("problem", "parameter", "value", "remedy"):
        assert getattr(arrived, part) == getattr(error, part)
    for words in (PLAIN, COMMAND_LINE, PYTHON):
        assert arrived.told(words) == error.told(words)


def test_a_training_error_travels_whole_too():
    error = TrainingError("the loss is not finite", remedy="lower {heads.learning_rate}")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is TrainingError
    assert arrived.told(COMMAND_LINE) == error.told(COMMAND_LINE)


@pytest.mark.parametrize(
    "error", [TOO_FEW, TrainingError("not finite", remedy="lower {n_clusters}")]
)
def test_python_callers_catch_the_same_kind_in_their_own_words(error):
    with pytest.raises(type(error)) as caught, in_python_words():
        raise error
    assert str(caught.value) == error.told(PYTHON)
    assert caught.value.__suppress_context__

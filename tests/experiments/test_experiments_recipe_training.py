"""Real runs of seconds: one after the other, failing, stopped, gone on with."""

import signal
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.experiments.paper import table
from dcdc.experiments.recipe_runs import RecipeRun
from dcdc.experiments.recipe_training import Training
from dcdc.experiments.sequence import TIME_OVER, carry_out
from dcdc.run_folder import RunFolder


class Watched(SilentObserver):
    def __init__(self):
        self.steps = 0
        self.on_each = lambda: None

    def on_step(self, terms, n_images):  # noqa: ARG002 - the signature of an observer
        self.steps += 1
        self.on_each()


@pytest.fixture
def bench(tiny_set):
    """What carries out runs, and what it read, said and did."""
    seen = SimpleNamespace(read=[], said=[], warned=[], reports=[], watched=Watched())

    def read(data):
        seen.read.append(data.source)
        return tiny_set

    @contextmanager
    def watch():
        yield seen.watched

    def after(folder, _):
        seen.reports.append(folder.path)

    def carry_out_all(runs, read=read, is_over=lambda: False):
        training = Training(read, watch, is_over, after)
        say, warn = seen.said.append, seen.warned.append
        return carry_out(runs, training.work, is_over=is_over, say=say, warn=warn)

    seen.carry_out = carry_out_all
    return seen


@pytest.fixture
def make_run(tiny_config, tmp_path):
    def make(name: str, **values) -> RecipeRun:
        short = {"heads.epochs": 2, "data.source": ""}
        config = with_values(tiny_config, short | values)
        return RecipeRun(table("main").rows[0], config, tmp_path / "out" / name)

    return make


def history(run: RecipeRun) -> list[dict]:
    return [{**line, "seconds": 0} for line in RunFolder(run.folder).read_history()]


def test_the_first_epochs_of_a_longer_run_are_the_shorter_run(bench, make_run):
    """As they would be if it had been trained: number for number."""
    longer, alone = make_run("longer", **{"heads.epochs": 3}), make_run("alone")
    bench.carry_out([longer, alone])
    steps, shared = bench.watched.steps, replace(make_run("shared"), longer=longer.folder)
    bench.carry_out([shared])
    assert bench.watched.steps == steps
    assert not shared.folder.exists()
    assert history(longer)[:2] == history(alone)
    expected, found = alone.standing(), shared.standing()
    assert (found.state, found.epochs, found.chosen) == ("done", 2, expected.chosen)
    assert found.metrics["device"] == expected.metrics["device"]
    assert found.metrics["training_seconds"] < longer.standing().metrics["training_seconds"]


def test_what_is_missing_is_trained_once_and_shared_images_are_read_once(bench, make_run):
    first, second = make_run("a"), make_run("b", **{"train.seed": 1})
    ended = bench.carry_out([first, second, first])
    assert (ended.faults, ended.stopped) == ({}, "")
    assert bench.reports == [first.folder, second.folder]
    assert bench.read == ["cifar10"]
    assert first.standing().state == second.standing().state == "done"
    steps = bench.watched.steps
    bench.carry_out([first, second])
    assert bench.watched.steps == steps
    assert bench.read == ["cifar10"]


def test_a_failing_run_does_not_stop_the_rest(bench, make_run):
    too_large = make_run("large", **{"heads.batch_size": 49})
    diverging = make_run("wild", **{"heads.learning_rate": 1e30})
    broken, good = make_run("broken"), make_run("good")
    broken.folder.mkdir(parents=True)
    (broken.folder / "config.json").write_text("{")
    ended = bench.carry_out([too_large, diverging, broken, good])
    assert list(ended.faults) == [too_large.folder, diverging.folder, broken.folder]
    assert "a batch of 49 is larger" in ended.faults[too_large.folder]
    assert "not finite" in ended.faults[diverging.folder]
    assert not too_large.folder.exists()
    assert good.standing().state == "done"
    assert any(text.startswith(f"{too_large.folder} failed: ") for text in bench.warned)


def test_memory_that_does_not_suffice_is_a_line_and_does_not_stop_the_rest(bench, make_run):
    def ask_once():
        bench.watched.on_each = lambda: None
        torch.empty(2**50)

    bench.watched.on_each = ask_once
    first, second = make_run("first"), make_run("second")
    ended = bench.carry_out([first, second])
    assert list(ended.faults) == [first.folder]
    assert ended.faults[first.folder].startswith("memory does not suffice (4503599627370496 bytes")
    assert not any("Traceback" in text for text in bench.warned)
    assert second.standing().state == "done"


def test_a_fault_of_our_own_is_shown_in_full_and_does_not_stop_the_rest(bench, make_run):
    def fail_once():
        bench.watched.on_each = lambda: None
        raise ZeroDivisionError("ours")

    bench.watched.on_each = fail_once
    first, second = make_run("first"), make_run("second")
    ended = bench.carry_out([first, second])
    assert ended.faults == {first.folder: "ZeroDivisionError: ours"}
    assert any("Traceback" in text for text in bench.warned)
    assert second.standing().state == "done"
    # What it left is gone on with.
    assert first.standing().state == "begun"
    assert bench.carry_out([first]).faults == {}
    assert history(first) == history(second)


def test_after_the_deadline_the_run_stops_saved_and_nothing_is_begun(bench, make_run):
    """The clock moves by one at every look."""
    clock = iter(range(10_000))
    first, second = make_run("first"), make_run("second")
    is_over = lambda: next(clock) >= 5  # noqa: E731
    ended = bench.carry_out([first, second], is_over=is_over)
    assert ended.stopped == TIME_OVER
    assert ended.faults == {}
    assert bench.watched.steps == 5  # of 12; the first look was before the run
    assert (first.standing().state, second.standing().state) == ("begun", "missing")
    assert bench.carry_out([first, second], is_over=is_over).stopped == TIME_OVER
    assert bench.watched.steps == 5
    assert bench.carry_out([first, second]).stopped == ""
    assert bench.watched.steps == 12 + 12
    assert history(first) == history(second)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_session_with_its_run_saved(bench, make_run, number):
    def stop_once():
        bench.watched.on_each = lambda: None
        signal.raise_signal(number)

    bench.watched.on_each = stop_once
    first, second = make_run("first"), make_run("second")
    assert bench.carry_out([first, second]).stopped == number.name
    assert (first.standing().state, second.standing().state) == ("begun", "missing")


def test_ctrl_c_while_images_are_read_stops_too(bench, make_run):
    def read(_):
        raise KeyboardInterrupt

    ended = bench.carry_out([make_run("a"), make_run("b")], read=read)
    assert ended.stopped == "SIGINT"
    assert ended.faults == {}


def test_a_run_that_was_begun_keeps_its_own_source(bench, make_run):
    given = make_run("a", **{"data.source": "a folder"})
    bench.watched.on_each = lambda: signal.raise_signal(signal.SIGINT)
    bench.carry_out([given])
    bench.watched.on_each = lambda: None
    again = make_run("a")
    assert bench.carry_out([again]).faults == {}
    assert bench.read == ["a folder", "a folder"]


def test_images_that_cannot_be_read_fail_one_run_alone(bench, make_run, tiny_set):
    def read(data):
        if data.source == "gone":
            raise InputError("gone is gone")
        return tiny_set

    runs = [make_run("a", **{"data.source": "gone"}), make_run("b")]
    ended = bench.carry_out(runs, read=read)
    assert ended.faults == {runs[0].folder: "gone is gone"}
    assert runs[1].standing().state == "done"


def test_a_folder_that_a_killed_run_left_half_made_is_begun_anew(bench, make_run):
    run = make_run("a")
    run.folder.mkdir(parents=True)
    (run.folder / ".config.1.partial.json").write_text("{")
    assert bench.carry_out([run]).faults == {}
    assert run.standing().state == "done"


def test_without_classes_nothing_is_trained(bench, make_run, tiny_set):
    """A table is of scores: they must not be missed after the training."""
    blind = replace(tiny_set, targets=None, class_names=())
    runs = [make_run("blind"), make_run("still blind", **{"train.seed": 1})]
    ended = bench.carry_out(runs, read=lambda _: blind)
    for run in runs:
        assert ended.faults[run.folder].startswith("cifar10 has no classes to score against: name ")
        assert not run.folder.exists()
    assert bench.watched.steps == 0

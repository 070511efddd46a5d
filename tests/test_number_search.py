"""How many clusters there are, from a source to a run folder: the images settle it."""

import json
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from dcdc import DCDC
from dcdc.config import with_values
from dcdc.data import from_arrays, from_vectors
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.observer import SilentObserver
from dcdc.engine.trainer import Trainer
from dcdc.errors import InputError
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.number_search import find_number, go_on
from dcdc.phases.contrast import Contrast
from dcdc.phases.discriminate import Discriminate
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel
from dcdc.prepare.assembly import build_training
from dcdc.prepare.cluster_number import FoundNumber, NumberRange
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.resolve import resolve
from dcdc.report import write_report
from dcdc.run import read_config, run
from dcdc.run_folder import RUN_FOLDER, RunFolder


def clouds(n_clouds: int, n_rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    kinds = np.arange(n_rows) % n_clouds
    vectors = 6 * np.eye(n_clouds, 24)[kinds] + random.normal(size=(n_rows, 24))
    return vectors.astype(np.float32), kinds


def prepared(n_clusters: object, n_clouds: int = 5):
    overrides = Overrides({"n_clusters": n_clusters, "train.threads": 1, "heads.epochs": 2})
    return prepare_run(from_vectors(*clouds(n_clouds)), overrides, find_number=find_number)


@pytest.mark.parametrize(("asked_for", "n_clouds"), [("auto", 4), ("3-9", 5)])
def test_a_run_has_as_many_clusters_as_the_vectors_settle_on(asked_for, n_clouds):
    found = prepared(asked_for, n_clouds)
    assert found.config.n_clusters == n_clouds
    assert found.number.is_settled
    assert max(found.number.strengths) == (13 if asked_for == "auto" else 10)


def test_a_number_that_is_given_is_not_looked_for():
    assert prepared(7).config.n_clusters == 7
    assert prepared(7).number is None


@pytest.mark.parametrize("asked_for", ["9-3", "1-5", "4-4"])
def test_what_is_no_range_is_refused(asked_for):
    with pytest.raises(InputError, match="is no range of numbers"):
        prepared(asked_for)


def test_a_range_beyond_the_images_is_refused():
    with pytest.raises(InputError, match="240 images are too few to settle"):
        prepared("5-100")


def test_who_cannot_look_says_so():
    with pytest.raises(InputError, match="in one process alone"):
        prepare_run(from_vectors(*clouds(3)), Overrides({"n_clusters": "auto"}))


FROZEN = FrozenHeads(epochs=2, batch_size=16, neighbours=3)
ALONE = Heads(epochs=5, batch_size=16, over_clustering_first=3, initialisation="k-means")
TEACH = SelfLabel(epochs=1, batch_size=16)
RECIPES = {
    "over-clustering first": ((ALONE, TEACH), 3),
    "contrast, heads": ((Contrast(epochs=2, batch_size=16), ALONE), 5),
    "contrast, frozen heads": ((Contrast(epochs=2, batch_size=16), FROZEN, TEACH), 2),
    "discriminate": ((Discriminate(epochs=2, batch_size=16, warmup_epochs=1), FROZEN), 2),
    "both heads at once": ((replace(ALONE, over_clustering_first=0),), 0),
}


@pytest.fixture(params=RECIPES)
def recipe(request, tiny_config, tiny_set):
    """Resolved, and how many epochs are before the cluster head's."""
    phases, before = RECIPES[request.param]
    config = resolve(replace(tiny_config, phases=phases), tiny_set)
    return with_values(config, {"network.over_clusters": 6, "n_clusters": 3}), before


def test_the_search_trains_all_epochs_before_the_cluster_head(recipe, tiny_set):
    config, before = recipe
    found = find_number(config, tiny_set, NumberRange(2, 4))
    assert found.number.strengths.keys() == {2, 3, 4, 5}
    assert [record["epoch"] for record in found.first.history] == list(range(1, before + 1))
    assert not any("sizes" in record for record in found.first.history)


def test_a_run_that_goes_on_from_the_search_is_the_run_with_its_number_given(
    recipe, tiny_set, tmp_path
):
    """To the bit, where the search had the same number of clusters."""
    config, before = recipe
    first = find_number(config, tiny_set, NumberRange(2, 4)).first
    folder = RunFolder.create(tmp_path / "run")
    whole = run(config, tiny_set)
    rest = run(config, tiny_set, folder=folder, first=first)
    np.testing.assert_array_equal(rest.assigned.probabilities, whole.assigned.probabilities)
    assert [each["loss"] for each in rest.history] == [each["loss"] for each in whole.history]
    assert folder.read_history() == rest.history
    seconds = sum(record["seconds"] for record in first.history)
    assert rest.metrics["training_seconds"] >= round(seconds, 2) > 0 or before == 0


def test_another_number_goes_on_from_the_same_features(recipe, tiny_set):
    config, _ = recipe
    first = find_number(config, tiny_set, NumberRange(2, 4)).first
    result = run(with_values(config, {"n_clusters": 4}), tiny_set, first=first)
    assert result.assigned.probabilities.shape == (tiny_set.n_images, 4)
    training = build_training(config, tiny_set, SilentObserver(), None)
    training.trainer.take_up(first)
    heads = training.model.network.heads
    drawn = build_training(config, tiny_set, SilentObserver(), None).model.network.heads
    assert (heads["cluster_head"].weight == drawn["cluster_head"].weight).all()
    learnt = first.tensors["network/heads.over_clustering_head.weight"]
    assert (heads["over_clustering_head"].weight == learnt).all()


def test_a_run_that_went_on_resumes_to_the_bit(recipe, tiny_set, tmp_path):
    """Its first checkpoint is what it took up, whatever ends it next."""
    config, before = recipe
    config = with_values(config, {"train.checkpoint_every": 100})
    first = find_number(config, tiny_set, NumberRange(2, 4)).first
    whole = run(with_values(config, {"n_clusters": 4}), tiny_set, first=first)

    class Killed(SilentObserver):
        def on_epoch(self, record):  # noqa: ARG002
            raise KeyboardInterrupt

    folder = RunFolder.create(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        run(
            with_values(config, {"n_clusters": 4}),
            tiny_set,
            **{"folder": folder, "first": first, "observer": Killed()},
        )
    seen = []

    class Watching(SilentObserver):
        def on_start(self, *, epoch, **_):
            seen.append(epoch)

    resumed = run(
        with_values(config, {"n_clusters": 4}),
        tiny_set,
        **{"folder": folder, "resume": True, "observer": Watching()},
    )
    assert seen == [before]
    np.testing.assert_array_equal(resumed.assigned.probabilities, whole.assigned.probabilities)
    assert [each["loss"] for each in folder.read_history()] == [
        each["loss"] for each in whole.history
    ]


def test_what_images_give_a_backbone_is_found_once(tiny_config, tiny_set, monkeypatch):
    """A dictionary of patches is most of a short run."""
    made = []
    monkeypatch.setattr(
        "dcdc.engine.trainer.initialise_backbone", lambda context: made.append(context)
    )
    config = resolve(tiny_config, tiny_set)
    first = find_number(config, tiny_set, NumberRange(2, 4)).first
    run(config, tiny_set, first=first)
    assert len(made) == 1


@pytest.mark.parametrize(("n_found", "goes_on"), [(12, True), (25, False)])
def test_settings_for_many_more_clusters_begin_anew(tiny_set, n_found, goes_on):
    asked, number = [], ClusterNumber(n_found, {n_found: 1.0}, True, ())

    def find(config, *_):
        asked.append(config)
        return FoundNumber(number, FirstEpochs(1, {}, ()))

    images = from_arrays(np.repeat(tiny_set.images, 4, axis=0))
    found = prepare_run(images, Overrides({"n_clusters": "auto"}), find_number=find)
    assert found.config.n_clusters == n_found
    assert (found.first is not None) == goes_on
    as_asked = replace(asked[0], n_clusters=n_found)
    assert (found.config == as_asked) == goes_on


def test_the_report_shows_how_it_was_settled(tmp_path):
    found = prepared("auto", 4)
    folder = RunFolder.create(tmp_path / "run")
    run(found.config, found.images, folder=folder, number=found.number)
    kept = json.loads(folder.number_file.read_text())
    assert (kept["number"], kept["is_settled"]) == (4, True)
    assert kept["strengths"]["4"] > kept["strengths"]["5"]
    page = write_report(folder, found.images).read_text()
    assert "How many clusters" in page
    folder.number_file.unlink()
    assert "How many clusters" not in write_report(folder, found.images).read_text()


@pytest.mark.slow  # trains features first, then the run
def test_images_are_told_apart_by_features_that_are_learnt_first(tiny_set):
    random = np.random.default_rng(0)
    rows = random.integers(0, tiny_set.n_images, 180)
    noise = random.integers(0, 20, (180, *tiny_set.image_shape))
    images = (tiny_set.images[rows].clip(max=235) + noise).astype(np.uint8)
    kinds = tiny_set.targets[rows]
    model = DCDC(n_clusters="2-6", random_state=0, epochs=8).fit(images)
    assert model.n_clusters_ == 3
    assert model.cluster_number_.is_settled
    assert model.score(images, kinds) > 0.95


class Stopped(SilentObserver):
    """Stands for a signal, or for a kill: after so many epochs, or while numbers are compared."""

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self.seen: list[int] = []

    def on_start(self, *, epoch, **_):
        self.seen.append(epoch)

    def on_epoch(self, record):
        if record["epoch"] == self.epoch:
            raise KeyboardInterrupt

    @contextmanager
    def counting(self, what):
        if self.epoch is None and what == "comparing numbers of clusters":
            raise KeyboardInterrupt
        yield lambda *_: None


@pytest.mark.parametrize("stopped_after", [1, 2, None])
def test_a_search_that_was_stopped_goes_on(recipe, tiny_set, tmp_path, stopped_after):
    config, before = recipe
    config = with_values(config, {"train.checkpoint_every": 1})
    if stopped_after is not None and stopped_after > before + 1:
        pytest.skip("the search is shorter")
    whole = find_number(config, tiny_set, NumberRange(2, 4))
    folder = RunFolder.create(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), folder.writing():
        find_number(config, tiny_set, NumberRange(2, 4), Stopped(stopped_after), folder=folder)
    stored = read_config(RunFolder.open(folder.path))
    assert stored.n_clusters is None
    watching = Stopped(-1)
    again = RunFolder.open(folder.path)
    settled, found = go_on(stored, tiny_set, again, watching)
    assert found.number == whole.number
    assert settled == replace(config, n_clusters=whole.number.number)
    assert watching.seen[0] == (before if stopped_after is None else min(stopped_after - 1, before))
    expected = run(settled, tiny_set, first=whole.first)
    result = run(settled, tiny_set, folder=again, number=found.number, first=found.first)
    np.testing.assert_array_equal(result.assigned.probabilities, expected.assigned.probabilities)
    assert [each["loss"] for each in result.history] == [each["loss"] for each in expected.history]
    assert not again.search.exists()
    assert next(RUN_FOLDER.strangers(again.path), None) is None


def test_a_kill_between_the_search_and_the_run_loses_nothing(tiny_config, tiny_set, tmp_path):
    """At each of its writes in turn."""
    other = replace(tiny_config, phases=(ALONE, TEACH), n_clusters=5)  # than any that is found
    config = resolve(other, tiny_set)
    whole = find_number(config, tiny_set, NumberRange(2, 4))
    settled = replace(config, n_clusters=whole.number.number)
    expected = run(settled, tiny_set, first=whole.first).assigned.probabilities
    for n_writes in count():
        folder = RunFolder.create(tmp_path / f"run-{n_writes}")
        found = find_number(config, tiny_set, NumberRange(2, 4), folder=folder)
        done: list[str] = []

        def killed(name, real, done=done, n_writes=n_writes):
            def write(*given, **how):
                if len(done) == n_writes:
                    raise KeyboardInterrupt
                done.append(name)
                return real(*given, **how)

            return write

        with pytest.MonkeyPatch.context() as patched:
            for owner, name in (
                (Trainer, "take_up"),
                (RunFolder, "write_config"),
                (RunFolder, "write_number"),
                (RunFolder, "end_search"),
                (Trainer, "train"),
            ):
                patched.setattr(owner, name, killed(name, getattr(owner, name)))
            try:
                run(settled, tiny_set, folder=folder, number=found.number, first=found.first)
                was_killed = False
            except KeyboardInterrupt:
                was_killed = True
        opened = RunFolder.open(folder.path)
        stored = read_config(opened)
        if stored.n_clusters is None:
            stored, found = go_on(stored, tiny_set, opened, SilentObserver())
            result = run(stored, tiny_set, folder=opened, number=found.number, first=found.first)
        else:
            result = run(stored, tiny_set, folder=opened, resume=True)
        np.testing.assert_array_equal(result.assigned.probabilities, expected)
        assert not opened.search.exists()
        if not was_killed:
            break
    assert n_writes == 5

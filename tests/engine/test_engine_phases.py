"""A training in phases: instance contrast, then heads with neighbours, then self-labels."""

import os
import shutil
import signal
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
import torch

from dcdc.assembly import build_network, build_training
from dcdc.config import with_values
from dcdc.config_for_images import resolve
from dcdc.engine.checkpoints import list_checkpoints, load_checkpoint
from dcdc.engine.history import read_history
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS, INSTANCE, SELF_LABEL
from dcdc.errors import Interrupted, TrainingError

PROJECTION, OVER, CLUSTER = ("projection",), ("over_clustering_head",), ("cluster_head",)
EPOCHS = 6
STEPS = 2 * 3 + (4 + 2 * 4) + 2 * 2


@pytest.fixture
def config(tiny_config):
    """Of 48 images, 3 steps in each instance epoch, 4 in a pass of a head, 2 of self-labels."""
    return with_values(
        tiny_config,
        {
            "instance.epochs": 2,
            "instance.batch_size": 16,
            "instance.projection": 8,
            "instance.warmup_epochs": 1,
            "train.epochs": 2,
            "train.batch_size": 12,
            "train.neighbours": 3,
            "train.over_clustering_first": 1,
            "train.head_start": "k-means",
            "self_label.epochs": 2,
            "self_label.batch_size": 24,
            "self_label.threshold": 0.6,
            "train.keep_checkpoints": 99,
        },
    )


class Stopper(SilentObserver):
    """Asks to stop after a step, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self.left = after

    def on_step(self, terms, n_images) -> None:  # noqa: ARG002
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


def trainer(config, image_set, folder=None, observer=None):
    observer = observer or SilentObserver()
    return build_training(resolve(config, image_set), image_set, observer, folder).trainer


def watch(built, note):
    """`note` is told of every step before it is made."""
    for kind, step in list(built.steps.items()):

        def watched(indices, heads, kind=kind, step=step):
            note(kind, indices, heads)
            return step(indices, heads)

        built.steps[kind] = watched


def same(left, right) -> bool:
    states = [list(built.network.state_dict().values()) for built in (left, right)]
    return all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def plain(history) -> list[dict]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in history]


def with_extra(image_set, n_extra=20):
    return replace(image_set, extra=255 - image_set.images[:n_extra])


def test_phases_come_in_order_with_their_heads_batches_and_records(config, tiny_set):
    built, calls = trainer(config, tiny_set), []
    watch(built, lambda kind, indices, heads: calls.append((kind, heads, len(indices))))
    built.train()
    assert [(call, len(list(same))) for call, same in groupby(calls)] == [
        ((INSTANCE, PROJECTION, 16), 6),
        ((HEADS, OVER, 24), 8),  # 12 images and a partner of each
        ((HEADS, CLUSTER, 24), 4),
        ((SELF_LABEL, CLUSTER, 24), 4),
    ]
    history = built.history
    assert [line["phase"] for line in history] == [
        kind for kind in (INSTANCE, HEADS, SELF_LABEL) for _ in range(2)
    ]
    assert [line["epoch"] for line in history] == [1, 2, 3, 4, 5, 6]
    assert history[0].keys() == {"epoch", "seconds", "phase", "loss", "instance"}
    for line in history[2:]:
        assert {"acc", "sizes", "active_clusters"} <= line.keys()
    assert {"loss", "self_label", "sure"} <= history[-1].keys()
    assert 0 <= history[-1]["sure"] <= 1
    assert len(calls) == built.plan.steps_after(0) == STEPS


def test_the_last_epoch_of_each_phase_with_heads_is_looked_at(config, tiny_set):
    built = trainer(with_values(config, {"train.evaluate_every": 5}), tiny_set)
    built.train()
    assert [line["epoch"] for line in built.history if "sizes" in line] == [4, 5, 6]


def test_each_phase_begins_without_moments_and_with_its_own_schedule(config, tiny_set):
    settings = {"instance.learning_rate": 3e-3, "self_label.learning_rate": 2e-4}
    built, rates, at_start = trainer(with_values(config, settings), tiny_set), {}, {}

    def note(kind, _indices, _heads):
        rates.setdefault(kind, []).append(built.optimiser.lr)
        if kind not in at_start:
            at_start[kind] = [
                value.abs().max().item()
                for state in built.optimiser.state.values()
                for value in state.values()
            ]

    watch(built, note)
    built.train()
    assert at_start[INSTANCE] == []
    for kind in (HEADS, SELF_LABEL):
        assert at_start[kind]
        assert not any(at_start[kind])
    assert any(
        value.abs().max() > 0
        for state in built.optimiser.state.values()
        for value in state.values()
    )
    # a warm-up over the first epoch, then half a cosine to nothing
    falling = [1, 0.75, 0.25]
    assert rates[INSTANCE] == pytest.approx([0, 1e-3, 2e-3, *(3e-3 * part for part in falling)])
    assert rates[HEADS] == [1e-3] * 12
    cosine = [(1 + np.cos(np.pi * part)) / 2 for part in (0, 0.25, 0.5, 0.75)]
    assert rates[SELF_LABEL] == pytest.approx([2e-4 * part for part in cosine])


def test_neighbours_are_found_once_by_the_features_at_that_moment(config, tiny_set, tmp_path):
    built = trainer(config, tiny_set, tmp_path)
    search, found, wanted = built.find_neighbours, [], []

    def noted(k):
        found.append(search(k))
        return found[-1]

    def note(kind, indices, heads):  # noqa: ARG001
        if kind != HEADS:
            return
        if not wanted:  # the first step of the heads: no weight has moved since
            features = model.transform(tiny_set.images)
            wanted.append(nearest_neighbours(features, 3, torch.device("cpu")))
        images, partners = indices.chunk(2)
        assert (wanted[0][images] == partners[:, None]).any(1).all()

    built.find_neighbours = noted
    model = build_training(resolve(config, tiny_set), tiny_set, SilentObserver(), None).model
    model.network = built.network
    watch(built, note)
    built.train()
    assert len(found) == 1
    assert torch.equal(found[0], wanted[0])
    kept = {
        checkpoint.epoch: checkpoint.tensors.get("neighbours")
        for checkpoint in map(load_checkpoint, list_checkpoints(tmp_path / "checkpoint"))
    }
    assert [epoch for epoch, table in kept.items() if table is not None] == [3, 4]
    assert torch.equal(kept[3], found[0])
    assert built.neighbours is None


def test_every_pass_draws_other_partners(config, tiny_set):
    built, drawn = trainer(config, tiny_set), []

    def note(kind, indices, heads):  # noqa: ARG001
        if kind == HEADS:
            images, partners = indices.chunk(2)
            drawn.append((built.neighbours[images] == partners[:, None]).long().argmax(1))

    watch(built, note)
    built.train()
    passes = [tuple(torch.cat(drawn[first : first + 4]).tolist()) for first in (0, 4, 8)]
    assert len(set(passes)) == 3


def test_the_cluster_head_is_started_once_where_its_own_epochs_begin(config, tiny_set):
    built, started = trainer(config, tiny_set), []
    start = built.start_cluster_head

    def noted():
        started.append(built.epoch)
        start()

    built.start_cluster_head = noted
    built.train()
    assert started == [3]  # after two instance epochs and one of the over-clustering head


def test_instance_epochs_show_extra_images_and_the_cluster_head_never_does(config, tiny_set):
    """Not even as partners, though every answered image has its double among the extra ones."""
    doubled = replace(tiny_set, extra=tiny_set.images)
    built = trainer(with_values(config, {"train.epochs": 4}), doubled)
    seen: dict[tuple, set[int]] = {}
    watch(
        built,
        lambda kind, indices, heads: seen.setdefault((kind, heads), set()).update(indices.tolist()),
    )
    built.train()
    assert max(seen[INSTANCE, PROJECTION]) >= 48
    assert max(seen[HEADS, OVER]) >= 48
    assert seen[HEADS, CLUSTER] <= set(range(48))
    assert seen[SELF_LABEL, CLUSTER] == set(range(48))
    assert sum(built.history[-1]["sizes"]) == 48


def test_resume_at_every_end_of_an_epoch_is_bit_exact(config, tiny_set, tmp_path):
    straight = trainer(config, tiny_set, tmp_path / "straight")
    straight.folder.mkdir()
    straight.train()
    for epoch in range(1, EPOCHS):
        folder = tmp_path / f"until-{epoch}"
        shutil.copytree(straight.folder, folder)
        for later in list_checkpoints(folder / "checkpoint")[epoch:]:
            shutil.rmtree(later)
        resumed = trainer(config, tiny_set, folder)
        assert resumed.resume()
        assert (resumed.epoch, resumed.steps_done) == (epoch, 0)
        resumed.train()
        assert same(straight, resumed), epoch
        assert plain(read_history(folder / "history.jsonl")) == plain(straight.history)


def test_a_run_stopped_after_every_single_step_ends_as_one_never_stopped(
    config, tiny_set, tmp_path
):
    config = with_values(config, {"train.checkpoint_every": 99, "train.keep_checkpoints": 1})
    straight = trainer(config, tiny_set)
    straight.train()
    for done in range(STEPS):
        built = trainer(config, tiny_set, tmp_path, Stopper(1))
        assert built.resume() == (done > 0)
        assert built.plan.steps_after(built.epoch) - built.steps_done == STEPS - done
        if done == STEPS - 1:
            built.train()
            break
        with pytest.raises(Interrupted):
            built.train()
    assert same(straight, built)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(straight.history)


def test_a_streamed_set_trains_to_the_same_weights(config, tiny_set, tmp_path, monkeypatch):
    resident = trainer(config, with_extra(tiny_set))
    resident.train()
    np.save(tmp_path / "images.npy", tiny_set.images)
    mapped = replace(tiny_set, images=np.load(tmp_path / "images.npy", mmap_mode="r"))
    monkeypatch.setattr("dcdc.data.store._RESIDENT_BYTES", 0)
    streamed = trainer(config, with_extra(mapped))
    assert not any(step.store.is_resident for step in streamed.steps.values())
    streamed.train()
    assert same(streamed, resident)
    assert plain(streamed.history) == plain(resident.history)


@pytest.mark.parametrize(
    ("without", "kinds"),
    [
        ({"self_label.epochs": 0}, [INSTANCE, HEADS]),
        ({"instance.epochs": 0, "train.neighbours": 0}, [HEADS, SELF_LABEL]),
    ],
)
def test_a_phase_of_no_epochs_is_left_out(config, tiny_set, without, kinds):
    built = trainer(with_values(config, without), tiny_set)
    built.train()
    assert list(built.steps) == kinds
    assert [line["phase"] for line in built.history] == [kind for kind in kinds for _ in range(2)]
    assert (built.network.projection is None) == (INSTANCE not in kinds)


def test_heads_alone_have_no_phases_to_name(config, tiny_set):
    built = trainer(with_values(config, {"instance.epochs": 0, "self_label.epochs": 0}), tiny_set)
    built.train()
    assert not any("phase" in line for line in built.history)


def test_a_phase_trains_the_trunk_and_its_own_heads_alone(config, tiny_set):
    """Instance epochs leave the heads as they were built, later ones the projection."""
    built, seen = trainer(config, tiny_set), {}

    def weights(module):
        return torch.cat([part.detach().flatten() for part in module.parameters()])

    def note(kind, _indices, _heads):
        if kind not in seen:
            seen[kind] = (
                weights(built.network.projection),
                weights(built.network.heads["over_clustering_head"]),
                weights(built.network.heads["cluster_head"]),
            )

    watch(built, note)
    built.train()
    projection, over, cluster = zip(*(seen[k] for k in (INSTANCE, HEADS, SELF_LABEL)), strict=True)
    assert not torch.equal(projection[0], projection[1])
    assert torch.equal(projection[1], weights(built.network.projection))
    assert torch.equal(over[0], over[1])
    assert not torch.equal(over[1], over[2])
    assert torch.equal(over[2], weights(built.network.heads["over_clustering_head"]))
    assert torch.equal(cluster[0], cluster[1])
    assert not torch.equal(cluster[2], weights(built.network.heads["cluster_head"]))


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (INSTANCE, r"lower --set instance.learning_rate \(now 0.001\) or a higher instance.temp"),
        (HEADS, r"lower --set train.learning_rate \(now 0.001\) or a higher loss.temperature"),
        (SELF_LABEL, r"lower --set self_label.learning_rate \(now 0.0001\)$"),
    ],
)
def test_what_went_wrong_is_answered_with_the_settings_of_its_phase(config, tiny_set, kind, hint):
    built = trainer(config, tiny_set)

    def spoil(now, _indices, _heads):
        if now == kind:
            with torch.no_grad():
                built.network.trunk.layers[0].weight.fill_(float("nan"))

    watch(built, spoil)
    with pytest.raises(TrainingError, match=hint):
        built.train()


def test_a_prediction_goes_on_in_the_middle_with_its_slow_copy(config, tiny_set, tmp_path):
    config = with_values(config, {"instance.kind": "prediction", "instance.momentum": 0.9})
    whole = trainer(config, tiny_set)
    whole.train()
    assert whole.history[0].keys() == {"epoch", "seconds", "phase", "loss", "instance"}
    with pytest.raises(Interrupted):
        trainer(config, tiny_set, tmp_path, Stopper(after=4)).train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    slow = resumed.network.slow_copy.state_dict()
    assert not torch.equal(
        slow["network.1.0.weight"], resumed.network.projection.state_dict()["0.weight"]
    )
    resumed.train()
    assert same(resumed, whole)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(whole.history)


@pytest.mark.parametrize("given", [False, True])
def test_a_slow_copy_begins_with_the_weights_that_training_begins_with(
    config, tiny_set, given, monkeypatch
):
    """Those that the images give a trunk, or those of another run, which have no slow copy."""
    for module in ("networks.patches", "engine.patch_start"):
        monkeypatch.setattr(f"dcdc.{module}.N_PATCHES", 60)
    values = {"instance.kind": "prediction", "network.trunk": "patches"}
    config = resolve(with_values(config, values), tiny_set)
    weights = build_network(with_values(config, {"train.seed": 1})).state_dict()
    observer = SilentObserver()
    built = build_training(
        config, tiny_set, observer, None, weights=weights if given else None
    ).trainer
    seen = {}

    def note(kind, indices, heads):  # noqa: ARG001
        if not seen:
            state = built.network.state_dict()
            seen.update({name: tensor.clone() for name, tensor in state.items()})

    watch(built, note)
    built.train()
    trunk = {name: tensor for name, tensor in seen.items() if name.startswith("trunk.")}
    assert trunk
    for name, tensor in trunk.items():
        slow = seen[f"slow_copy.network.0.{name.removeprefix('trunk.')}"]
        assert torch.equal(slow, tensor), name
        if given:
            assert torch.equal(tensor, weights[name]), name

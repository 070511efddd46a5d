"""A training in phases: instance contrast, then heads with neighbours, then self-labels."""

import os
import shutil
import signal
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pytest
import torch
from torch import nn

from dcdc.config import PHASES, with_values
from dcdc.engine.checkpoints import list_checkpoints, load_checkpoint
from dcdc.engine.cluster_head_initialisation import initialise_by_k_means
from dcdc.engine.history import read_history
from dcdc.engine.neighbours import find_neighbours, nearest_neighbours
from dcdc.engine.observer import SilentObserver
from dcdc.engine.phase import Phase
from dcdc.engine.views import PerturbedPair
from dcdc.errors import Interrupted, TrainingError
from dcdc.prepare.assembly import build_network, build_training
from dcdc.prepare.resolve import resolve

CONTRAST, HEADS, SELF_LABEL = "contrast", "heads", "self_label"
OVER, CLUSTER = ("over_clustering_head",), ("cluster_head",)
EPOCHS = 6
STEPS = 2 * 3 + (4 + 2 * 4) + 2 * 2


@pytest.fixture
def config(tiny_config):
    """Of 48 images, 3 steps in each contrast epoch, 4 in a pass of a head, 2 of self-labels."""
    return with_values(
        tiny_config,
        {
            "phases": (CONTRAST, HEADS, SELF_LABEL),
            "contrast.epochs": 2,
            "contrast.batch_size": 16,
            "contrast.projection": 8,
            "heads.epochs": 2,
            "heads.batch_size": 12,
            "heads.neighbours": 3,
            "heads.over_clustering_first": 1,
            "heads.initialisation": "k-means",
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

    def watched(name, step):
        def noted(indices, heads):
            note(name, indices, heads)
            return step(indices, heads)

        return noted

    built.steps = tuple(map(watched, built.plan.names, built.steps))


def same(left, right) -> bool:
    states = [list(built.network.state_dict().values()) for built in (left, right)]
    return all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def plain(history) -> list[dict]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in history]


def with_extra(image_set, n_extra=20):
    return replace(image_set, extra=255 - image_set.images[:n_extra])


def test_phases_come_in_order_with_their_heads_batches_and_records(config, tiny_set):
    built, calls = trainer(config, tiny_set), []
    watch(built, lambda name, indices, heads: calls.append((name, heads, len(indices))))
    built.train()
    assert [(call, len(list(same))) for call, same in groupby(calls)] == [
        ((CONTRAST, (CONTRAST,), 16), 6),
        ((HEADS, OVER, 24), 8),  # 12 images and a partner of each
        ((HEADS, CLUSTER, 24), 4),
        ((SELF_LABEL, CLUSTER, 24), 4),
    ]
    history = built.history
    assert [line["phase"] for line in history] == [
        name for name in (CONTRAST, HEADS, SELF_LABEL) for _ in range(2)
    ]
    assert [line["epoch"] for line in history] == [1, 2, 3, 4, 5, 6]
    assert history[0].keys() == {"epoch", "seconds", "phase", "loss", "contrast"}
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
    settings = {"contrast.learning_rate": 3e-3, "self_label.learning_rate": 2e-4}
    built, rates, at_start = trainer(with_values(config, settings), tiny_set), {}, {}

    def note(name, _indices, _heads):
        optimiser = built.optimisers[built.plan.names.index(name)]
        rates.setdefault(name, []).append(optimiser.lr)
        at_start.setdefault(name, dict(optimiser.state))

    watch(built, note)
    built.train()
    assert at_start == {CONTRAST: {}, HEADS: {}, SELF_LABEL: {}}
    for optimiser in built.optimisers:
        moments = [state["exp_avg"].abs().max() for state in optimiser.state.values()]
        assert any(moment > 0 for moment in moments)

    def half_cosine(rate, n_steps):
        return [rate * (1 + np.cos(np.pi * step / n_steps)) / 2 for step in range(n_steps)]

    assert rates[CONTRAST] == pytest.approx(half_cosine(3e-3, 6))
    assert rates[HEADS] == [1e-3] * 12
    assert rates[SELF_LABEL] == pytest.approx(half_cosine(2e-4, 4))


def test_neighbours_are_found_once_by_the_features_at_that_moment(
    config, tiny_set, tmp_path, monkeypatch
):
    built = trainer(config, tiny_set, tmp_path)
    found, wanted = [], []

    def noted(model, store, k):
        found.append(find_neighbours(model, store, k))
        return found[-1]

    def note(name, indices, heads):  # noqa: ARG001
        if name != HEADS:
            return
        if not wanted:  # the first step of the heads: no weight has moved since
            features = model.transform(tiny_set.images)
            wanted.append(nearest_neighbours(features, 3, torch.device("cpu")))
        images, partners = indices.chunk(2)
        assert (wanted[0][images] == partners[:, None]).any(1).all()

    monkeypatch.setattr("dcdc.engine.partners.find_neighbours", noted)
    model = built.context.model
    watch(built, note)
    built.train()
    assert len(found) == 1
    assert torch.equal(found[0], wanted[0])
    kept = {
        checkpoint.epoch: checkpoint.tensors.get("phase/neighbours")
        for checkpoint in map(load_checkpoint, list_checkpoints(tmp_path / "checkpoint"))
    }
    assert [epoch for epoch, table in kept.items() if table is not None] == [3, 4]
    assert torch.equal(kept[3], found[0])
    assert built.context.state == {}


def test_every_pass_draws_other_partners(config, tiny_set):
    built, drawn = trainer(config, tiny_set), []

    def note(name, indices, heads):  # noqa: ARG001
        if name == HEADS:
            images, partners = indices.chunk(2)
            drawn.append(
                (built.context.state["neighbours"][images] == partners[:, None]).long().argmax(1)
            )

    watch(built, note)
    built.train()
    passes = [tuple(torch.cat(drawn[first : first + 4]).tolist()) for first in (0, 4, 8)]
    assert len(set(passes)) == 3


def test_the_cluster_head_is_started_once_where_its_own_epochs_begin(config, tiny_set, monkeypatch):
    built, started = trainer(config, tiny_set), []

    def noted(*given, **chosen):
        started.append(built.epoch)
        initialise_by_k_means(*given, **chosen)

    monkeypatch.setattr("dcdc.phases.heads.initialise_by_k_means", noted)
    built.train()
    assert started == [3]  # after two contrast epochs and one of the over-clustering head


def test_a_cluster_head_starts_on_the_way_back_from_a_phase_without_heads(config, tiny_set):
    built = trainer(config, tiny_set, observer=Stopper(after=4))  # in the second contrast epoch
    with pytest.raises(Interrupted):
        built.train(keep_finished=True)
    before = built.network.heads["cluster_head"].weight.detach().clone()
    assert built.return_to_finished_epoch()
    assert not torch.equal(built.network.heads["cluster_head"].weight, before)


def test_contrast_epochs_show_extra_images_and_the_cluster_head_never_does(config, tiny_set):
    """Not even as partners, though every answered image has its double among the extra ones."""
    doubled = replace(tiny_set, extra=tiny_set.images)
    built = trainer(with_values(config, {"heads.epochs": 4}), doubled)
    seen: dict[tuple, set[int]] = {}
    watch(
        built,
        lambda name, indices, heads: seen.setdefault((name, heads), set()).update(indices.tolist()),
    )
    built.train()
    assert max(seen[CONTRAST, (CONTRAST,)]) >= 48
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
    assert not any(step.store.is_resident for step in streamed.steps)
    streamed.train()
    assert same(streamed, resident)
    assert plain(streamed.history) == plain(resident.history)


@pytest.mark.parametrize(
    ("without", "names"),
    [
        ({"self_label.epochs": 0}, [CONTRAST, HEADS]),
        ({"contrast.epochs": 0, "heads.neighbours": 0}, [HEADS, SELF_LABEL]),
    ],
)
def test_a_phase_of_no_epochs_is_left_out(config, tiny_set, without, names):
    built = trainer(with_values(config, without), tiny_set)
    built.train()
    assert list(built.plan.names) == names
    assert len(built.steps) == len(names)
    assert [line["phase"] for line in built.history] == [name for name in names for _ in range(2)]
    assert list(built.network.parts) == [name for name in names if name == CONTRAST]


def test_heads_alone_have_no_phases_to_name(config, tiny_set):
    built = trainer(with_values(config, {"contrast.epochs": 0, "self_label.epochs": 0}), tiny_set)
    built.train()
    assert not any("phase" in line for line in built.history)


def test_a_phase_trains_the_backbone_and_its_own_heads_alone(config, tiny_set):
    """Contrast epochs leave the heads as they were built, later ones the projection."""
    built, seen = trainer(config, tiny_set), {}

    def weights(module):
        return torch.cat([part.detach().flatten() for part in module.parameters()])

    def note(name, _indices, _heads):
        if name not in seen:
            seen[name] = (
                weights(built.network.parts[CONTRAST]),
                weights(built.network.heads["over_clustering_head"]),
                weights(built.network.heads["cluster_head"]),
            )

    watch(built, note)
    built.train()
    projection, over, cluster = zip(*(seen[k] for k in (CONTRAST, HEADS, SELF_LABEL)), strict=True)
    assert not torch.equal(projection[0], projection[1])
    assert torch.equal(projection[1], weights(built.network.parts[CONTRAST]))
    assert torch.equal(over[0], over[1])
    assert not torch.equal(over[1], over[2])
    assert torch.equal(over[2], weights(built.network.heads["over_clustering_head"]))
    assert torch.equal(cluster[0], cluster[1])
    assert not torch.equal(cluster[2], weights(built.network.heads["cluster_head"]))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (CONTRAST, r"lower contrast.learning_rate \(now 0.001\) or a higher contrast.temperature$"),
        (HEADS, r"lower heads.learning_rate \(now 0.001\) or a higher heads.temperature$"),
        (SELF_LABEL, r"lower self_label.learning_rate \(now 0.0001\)$"),
    ],
)
def test_what_went_wrong_is_answered_with_the_settings_of_its_phase(config, tiny_set, name, hint):
    built = trainer(config, tiny_set)

    def spoil(now, _indices, _heads):
        if now == name:
            with torch.no_grad():
                built.network.backbone.layers[0].weight.fill_(float("nan"))

    watch(built, spoil)
    with pytest.raises(TrainingError, match=hint):
        built.train()


@pytest.fixture
def byol_config(config):
    values = {"byol.epochs": 2, "byol.batch_size": 16, "byol.projection": 8, "byol.momentum": 0.9}
    return with_values(config, {"phases": ("byol", HEADS, SELF_LABEL), **values})


def test_byol_goes_on_in_the_middle_with_its_target(byol_config, tiny_set, tmp_path):
    config = byol_config
    whole = trainer(config, tiny_set)
    whole.train()
    assert whole.history[0].keys() == {"epoch", "seconds", "phase", "loss", "byol"}
    with pytest.raises(Interrupted):
        trainer(config, tiny_set, tmp_path, Stopper(after=4)).train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    part = resumed.network.parts["byol"]
    assert not torch.equal(
        part.target.state_dict()["network.1.0.weight"], part.projection.state_dict()["0.weight"]
    )
    resumed.train()
    assert same(resumed, whole)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(whole.history)


def test_relations_go_on_in_the_middle_by_the_answers_of_the_epoch_s_beginning(
    config, tiny_set, tmp_path
):
    own = {"relate.epochs": 2, "relate.batch_size": 16, "relate.n_passes": 2}
    own |= {"relate.threshold": "even", "relate.information_weight": 0.1}
    config = with_values(config, {"phases": ("relate",)} | own)
    whole = trainer(config, tiny_set)
    whole.train()
    with pytest.raises(Interrupted):  # in the second pass of the second epoch
        trainer(config, tiny_set, tmp_path, Stopper(after=6 + 4)).train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    assert resumed.context.state.keys() == {"earlier", "band"}
    resumed.train()
    assert same(resumed, whole)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(whole.history)


def test_discrimination_goes_on_in_the_middle_with_its_centres_and_labels(
    config, tiny_set, tmp_path
):
    own = {"discriminate.epochs": 2, "discriminate.batch_size": 16, "discriminate.n_sets": 2}
    phases = {"phases": ("discriminate", HEADS), "discriminate.warmup_epochs": 0.5}
    config = with_values(config, phases | own)
    whole = trainer(config, tiny_set)
    whole.train()
    terms = {"loss", "discriminate", "same_label"}
    assert whole.history[0].keys() == {"epoch", "seconds", "phase"} | terms
    with pytest.raises(Interrupted):  # in the second of its epochs
        trainer(config, tiny_set, tmp_path, Stopper(after=4)).train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    assert (resumed.context.state["labels"] >= 0).any()
    assert resumed.optimiser.state.keys()
    resumed.train()
    assert same(resumed, whole)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(whole.history)


def test_heads_on_frozen_features_go_on_in_the_middle(config, tiny_set, tmp_path):
    own = {"frozen_heads.epochs": 2, "frozen_heads.batch_size": 16, "frozen_heads.n_heads": 2}
    phases = {"phases": ("frozen_heads", SELF_LABEL), "frozen_heads.neighbours": 3}
    config = with_values(config, phases | own | {"self_label.epochs": 1})
    whole = trainer(config, tiny_set)
    before = {name: t.clone() for name, t in whole.network.backbone.state_dict().items()}
    with pytest.raises(Interrupted):  # in the second of its epochs
        trainer(config, tiny_set, tmp_path, Stopper(after=4)).train()
    whole.train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    assert resumed.context.state.keys() == {"neighbours"}
    now = resumed.network.backbone.state_dict()
    assert all(torch.equal(now[name], t) for name, t in before.items())
    resumed.train()
    assert same(resumed, whole)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(whole.history)


@pytest.mark.parametrize("given", [False, True])
def test_an_ema_target_begins_with_the_weights_that_training_begins_with(
    byol_config, tiny_set, given, monkeypatch
):
    """Those that the images give a backbone, or those of another run, which have no target."""
    for module in ("networks.patches", "engine.patch_dictionary"):
        monkeypatch.setattr(f"dcdc.{module}.N_PATCHES", 60)
    config = resolve(with_values(byol_config, {"network.backbone": "patches"}), tiny_set)
    weights = build_network(with_values(config, {"train.seed": 1})).state_dict()
    observer = SilentObserver()
    built = build_training(
        config, tiny_set, observer, None, weights=weights if given else None
    ).trainer
    seen = {}

    def note(name, indices, heads):  # noqa: ARG001
        if not seen:
            state = built.network.state_dict()
            seen.update({name: tensor.clone() for name, tensor in state.items()})

    watch(built, note)
    built.train()
    backbone = {name: tensor for name, tensor in seen.items() if name.startswith("backbone.")}
    assert backbone
    for name, tensor in backbone.items():
        target = seen[f"parts.byol.target.network.0.{name.removeprefix('backbone.')}"]
        assert torch.equal(target, tensor), name
        if given:
            assert torch.equal(tensor, weights[name]), name


@dataclass(frozen=True)
class Counting(Phase):
    """As somebody else may write one; it counts its epochs."""

    kind = "counting"
    label = "counting"
    color = "#000000"
    is_scored = False

    def passes(self, number, heads):  # noqa: ARG002
        return (("counting",), ("again",))

    def part(self, network):
        return nn.Linear(network.n_features, 2)

    def begin(self, context):
        context.state["epochs"] = torch.zeros(1)

    def end_epoch(self, context, means):
        context.state["epochs"] += 1
        assert means.keys() == {"loss", "length"}

    def objective(self, context, tools):
        return CountingObjective(context.perturbed_copy(2), applied=tools.applied)


class CountingObjective(PerturbedPair):
    def loss(self, network, copies, heads):  # noqa: ARG002
        length = network.parts["counting"](network.features(copies[0])).square().mean()
        return length, {"length": length}


def test_a_phase_from_outside_trains_is_saved_and_resumed(config, tiny_set, tmp_path, monkeypatch):
    monkeypatch.setitem(PHASES._entries, "counting", Counting)
    config = with_values(
        config,
        {
            "phases": ("counting", HEADS, "counting-2"),
            "counting.epochs": 2,
            "counting.batch_size": 16,
            "counting-2.epochs": 1,
        },
    )
    calls = []
    straight = trainer(config, tiny_set)
    watch(straight, lambda name, indices, heads: calls.append((name, heads, len(indices))))
    straight.train()
    assert [(call, len(list(same))) for call, same in groupby(calls)] == [
        *((("counting", heads, 16), 3) for heads in 2 * (("counting",), ("again",))),
        ((HEADS, OVER, 24), 8),
        ((HEADS, CLUSTER, 24), 4),
        (("counting-2", ("counting",), 12), 4),  # batches as the phase before has them
        (("counting-2", ("again",), 12), 4),
    ]
    assert [line["phase"] for line in straight.history] == [
        *("counting", "counting"),
        *(HEADS, HEADS),
        "counting-2",
    ]
    assert [line["epoch"] for line in straight.history if "sizes" in line] == [3, 4]
    with pytest.raises(Interrupted):
        trainer(config, tiny_set, tmp_path, Stopper(after=6 + 2)).train()
    resumed = trainer(config, tiny_set, tmp_path)
    assert resumed.resume()
    assert resumed.context.state == {"epochs": torch.ones(1)}
    resumed.train()
    assert same(resumed, straight)
    assert plain(read_history(tmp_path / "history.jsonl")) == plain(straight.history)

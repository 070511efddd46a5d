"""The order of steps, what is written between them, and that nothing is lost."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.engine.checkpoints import list_checkpoints
from dcdc.engine.history import read_history
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve


class Recorder(SilentObserver):
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.epochs: list[dict] = []
        self.steps_left = 0
        self.steps = 0
        self.interrupt_at = -1

    def on_start(self, **told) -> None:
        self.steps_left = told["steps_left"]

    def on_step(self, terms, n_images) -> None:  # noqa: ARG002
        self.steps += 1
        if self.steps == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def on_epoch(self, record) -> None:
        self.epochs.append(record)

    def warn(self, message) -> None:
        self.warnings.append(message)


def begun_by_k_means(config, after):
    values = {"heads.over_clustering_first": after, "heads.initialisation": "k-means"}
    return with_values(config, values)


def trainer(config, image_set, folder=None, observer=None):
    observer = observer or Recorder()
    return build_training(resolve(config, image_set), image_set, observer, folder).trainer


def weights(built) -> list[torch.Tensor]:
    return list(built.network.state_dict().values())


def same(left, right) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(left), weights(right), strict=True))


def test_an_epoch_shows_every_head_the_images_in_full_batches(tiny_config, tiny_set):
    """48 images in batches of 20: two full batches a pass, the eight left over wait."""
    built = trainer(with_values(tiny_config, {"heads.batch_size": 20, "heads.epochs": 3}), tiny_set)
    calls: list[tuple] = []
    (step,) = built.steps

    def note(indices, heads):
        calls.append((tuple(indices.tolist()), heads))
        return step(indices, heads)

    built.steps = (note,)
    built.train()
    assert [heads for _, heads in calls[:4]] == [("over_clustering_head",)] * 2 + [
        ("cluster_head",)
    ] * 2
    assert len(calls) == 3 * 4
    assert built.observer.steps_left == 12
    left_out = []
    for first in range(0, 12, 2):
        seen = calls[first][0] + calls[first + 1][0]
        assert len(set(seen)) == 40
        left_out.append(frozenset(range(48)) - set(seen))
    assert len(set(left_out)) > 1  # another epoch leaves out other images


def test_one_seed_one_result_and_another_seed_another(tiny_config, tiny_set):
    first, again, other = (
        trainer(with_values(tiny_config, {"train.seed": seed}), tiny_set) for seed in (1, 1, 2)
    )
    for built in (first, again, other):
        built.train()
    assert same(first, again)
    assert not same(first, other)
    drop = lambda record: {k: v for k, v in record.items() if k != "seconds"}  # noqa: E731
    assert list(map(drop, first.history)) == list(map(drop, again.history))


def test_a_history_line_has_terms_health_and_scores(tiny_config, tiny_set, tmp_path):
    built = trainer(tiny_config, tiny_set, tmp_path)
    built.train()
    records = read_history(tmp_path / "history.jsonl")
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert records == built.history
    wanted = {"epoch", "seconds", "loss", "sizes", "active_clusters", "largest_share"}
    wanted |= {"entropy_of_mean", "mean_confidence", "warnings", "acc", "nmi", "ari", "purity"}
    for head in ("cluster_head", "over_clustering_head"):
        wanted |= {f"{head}/sample_view", f"{head}/class_view"}
    assert records[0].keys() == wanted
    assert sum(records[0]["sizes"]) == 48


def test_without_targets_there_are_no_scores(tiny_config, tiny_set):
    built = trainer(tiny_config, replace(tiny_set, targets=None, class_names=()))
    built.train()
    assert "acc" not in built.history[-1]
    assert "active_clusters" in built.history[-1]


def test_the_partition_is_looked_at_as_often_as_asked_and_at_the_end(tiny_config, tiny_set):
    built = trainer(
        with_values(tiny_config, {"heads.epochs": 5, "train.evaluate_every": 2}), tiny_set
    )
    built.train()
    looked = [record["epoch"] for record in built.history if "sizes" in record]
    assert looked == [2, 4, 5]


def test_the_schedule_sets_the_rate_of_each_step(tiny_config, tiny_set):
    built = trainer(with_values(tiny_config, {"heads.schedule": "cosine"}), tiny_set)
    rates, (step,) = [], built.steps

    def note(indices, heads):
        rates.append(built.optimiser.lr)
        return step(indices, heads)

    built.steps = (note,)
    built.train()
    assert rates[0] == pytest.approx(1e-3)
    assert rates == sorted(set(rates), reverse=True)
    assert rates[-1] < 1e-4


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resume_at_any_epoch_is_bit_exact(tiny_config, tiny_set, tmp_path, stop_after):
    config = begun_by_k_means(tiny_config, after=1)
    straight = trainer(config, tiny_set, tmp_path / "straight")
    straight.folder.mkdir()
    straight.train()

    short = trainer(
        with_values(config, {"heads.epochs": stop_after + 1}), tiny_set, tmp_path / "broken"
    )
    (phase,) = short.plan.phases
    short.plan = replace(short.plan, phases=(replace(phase, epochs=stop_after),))
    short.folder.mkdir()
    short.train()
    resumed = trainer(config, tiny_set, tmp_path / "broken")
    assert resumed.resume()
    assert resumed.epoch == stop_after
    resumed.train()
    assert same(straight, resumed)
    lines = [read_history(t.folder / "history.jsonl") for t in (straight, resumed)]
    for record in (*lines[0], *lines[1]):
        del record["seconds"]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("device", "precision"),
    [
        ("cpu", "float32"),
        pytest.param("cuda", "float32", marks=pytest.mark.gpu),
        pytest.param("cuda", "bfloat16", marks=pytest.mark.gpu),
    ],
)
def test_moments_lie_in_memory_as_their_weights_do_after_a_resume(
    tiny_config, tiny_set, tmp_path, device, precision
):
    """Files know one layout, and a fused optimiser walks through the memory of both."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    config = with_values(tiny_config, {"train.device": device, "train.precision": precision})
    first = trainer(config, tiny_set, tmp_path)
    first.train()
    again = trainer(config, tiny_set, tmp_path)
    assert again.resume()
    weights = [list(each.network.parameters()) for each in (first, again)]
    assert any(not weight.is_contiguous() for weight in weights[0])
    for before, after in zip(*weights, strict=True):
        assert torch.equal(after, before)
        for name in ("exp_avg", "exp_avg_sq"):
            moment = again.optimiser.state[after][name]
            assert torch.equal(moment, first.optimiser.state[before][name])
            assert moment.stride() == after.stride()


@pytest.mark.parametrize("step", [1, 4, 8, 11])
def test_a_signal_between_two_steps_loses_nothing(tiny_config, tiny_set, tmp_path, step):
    straight = trainer(tiny_config, tiny_set)
    straight.train()
    observer = Recorder()
    observer.interrupt_at = step
    broken = trainer(tiny_config, tiny_set, tmp_path, observer)
    with pytest.raises(Interrupted, match="stopped by SIGINT after"):
        broken.train()
    assert observer.steps == step
    resumed = trainer(tiny_config, tiny_set, tmp_path)
    assert resumed.resume()
    assert (resumed.epoch, resumed.steps_done) == divmod(step, 6)
    resumed.train()
    assert resumed.observer.steps == 24 - step
    assert same(straight, resumed)
    lines = read_history(tmp_path / "history.jsonl")
    assert [line["loss"] for line in lines] == [line["loss"] for line in straight.history]


def test_checkpoints_come_as_often_as_asked_and_at_the_end(tiny_config, tiny_set, tmp_path):
    config = with_values(
        tiny_config, {"heads.epochs": 5, "train.checkpoint_every": 2, "train.keep_checkpoints": 9}
    )
    trainer(config, tiny_set, tmp_path).train()
    names = [path.name[:11] for path in list_checkpoints(tmp_path / "checkpoint")]
    assert names == ["epoch-00002", "epoch-00004", "epoch-00005"]


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_state(
    tiny_config, tiny_set, tmp_path
):
    built = trainer(tiny_config, tiny_set, tmp_path)
    (step,), calls = built.steps, []

    def poisoned(indices, heads):
        calls.append(heads)
        if len(calls) == 14:  # in the third epoch
            with torch.no_grad():
                built.network.backbone.layers[0].weight.fill_(float("nan"))
        return step(indices, heads)

    built.steps = (poisoned,)
    with pytest.raises(
        TrainingError, match=r"not finite in epoch 3.*weights themselves.*last good"
    ):
        built.train()
    resumed = trainer(tiny_config, tiny_set, tmp_path)
    assert resumed.resume()
    assert resumed.epoch == 2
    assert all(torch.isfinite(tensor).all() for tensor in weights(resumed))
    assert len(read_history(tmp_path / "history.jsonl")) == 2


@pytest.mark.parametrize("evaluate_every", [1, 4])
def test_weights_spoilt_by_the_last_step_of_an_epoch_are_found_before_they_are_saved(
    tiny_config, tiny_set, tmp_path, evaluate_every
):
    """The loss of that step was still finite: only the weights tell."""
    built = trainer(
        with_values(tiny_config, {"train.evaluate_every": evaluate_every}), tiny_set, tmp_path
    )
    (step,), calls = built.steps, []

    def spoiling(indices, heads):
        calls.append(heads)
        terms = step(indices, heads)
        if len(calls) == 12:  # the last of the second epoch
            with torch.no_grad():
                built.network.backbone.layers[0].weight.fill_(float("nan"))
        return terms

    built.steps = (spoiling,)
    with pytest.raises(TrainingError, match=r"weights are not finite in epoch 2.*last good"):
        built.train()
    names = [path.name for path in list_checkpoints(tmp_path / "checkpoint")]
    assert names == ["epoch-00001-step-000000"]


def test_a_signal_never_saves_a_state_that_is_not_finite(tiny_config, tiny_set, tmp_path):
    observer = Recorder()
    observer.interrupt_at = 8
    built = trainer(tiny_config, tiny_set, tmp_path, observer)
    (step,) = built.steps

    def poisoned(indices, heads):
        if observer.steps == 7:
            with torch.no_grad():
                built.network.backbone.layers[0].weight.fill_(float("nan"))
        return step(indices, heads)

    built.steps = (poisoned,)
    with pytest.raises(TrainingError, match="not finite"):
        built.train()
    names = [path.name for path in list_checkpoints(tmp_path / "checkpoint")]
    assert names == ["epoch-00001-step-000000"]


def test_dead_clusters_are_warned_of_once(tiny_config, tiny_set):
    built = trainer(tiny_config, tiny_set)
    with torch.no_grad():
        built.network.heads["cluster_head"].bias[0] = 50.0
    built.train()
    assert sum("fall into one cluster" in warning for warning in built.observer.warnings) == 1
    assert sum("are empty" in warning for warning in built.observer.warnings) == 1
    assert built.observer.warnings[0].startswith("epoch 1:")


def test_a_cluster_head_that_has_not_begun_is_not_warned_of(tiny_config, tiny_set):
    built = trainer(
        with_values(tiny_config, {"heads.epochs": 3, "heads.over_clustering_first": 2.0}), tiny_set
    )
    with torch.no_grad():
        built.network.heads["cluster_head"].bias[0] = 50.0
    built.train()
    assert [len(record["warnings"]) for record in built.history] == [0, 0, 2]
    assert all(warning.startswith("epoch 3:") for warning in built.observer.warnings)


def test_resume_refuses_another_number_of_images(tiny_config, tiny_set, tmp_path):
    trainer(tiny_config, tiny_set, tmp_path).train()
    fewer = replace(
        tiny_set,
        images=tiny_set.images[:40],
        names=tiny_set.names[:40],
        targets=tiny_set.targets[:40],
    )
    with pytest.raises(InputError, match="trained on 48 images, the source now has 40"):
        trainer(tiny_config, fewer, tmp_path).resume()


def test_k_means_starts_the_cluster_head_after_the_first_epochs(tiny_config, tiny_set):
    config = begun_by_k_means(tiny_config, after=2)
    built = trainer(config, tiny_set)
    head = built.network.heads["cluster_head"]
    untouched = head.weight.clone()
    seen = []
    (step,) = built.steps

    def note(indices, heads):
        seen.append((heads, head.weight.detach().clone()))
        return step(indices, heads)

    built.steps = (note,)
    built.train()
    early = [weight for heads, weight in seen[:6]]
    assert all(torch.equal(weight, untouched) for weight in early)
    assert not torch.equal(seen[6][1], untouched)
    assert built.history[-1]["acc"] > 0.9


def with_extra(image_set, n_extra=20):
    return replace(image_set, extra=255 - image_set.images[:n_extra])


def indices_seen(built):
    seen: dict[tuple, set[int]] = {}
    (step,) = built.steps

    def watched(indices, heads):
        seen.setdefault(heads, set()).update(indices.tolist())
        return step(indices, heads)

    built.steps = (watched,)
    built.train()
    return seen


def test_training_reaches_every_extra_image_and_answers_none(tiny_config, tiny_set):
    config = with_values(tiny_config, {"heads.epochs": 10})
    seen = indices_seen(trainer(config, with_extra(tiny_set)))
    assert seen[("over_clustering_head",)] == set(range(68))
    assert seen[("cluster_head",)] == set(range(48))
    built = trainer(config, with_extra(tiny_set))
    assert sum(built.evaluate()["sizes"]) == 48


def test_extra_images_change_the_result_and_a_resume_among_them_does_not(
    tiny_config, tiny_set, tmp_path
):
    richer = with_extra(tiny_set)
    whole = trainer(tiny_config, richer)
    whole.train()
    plain = trainer(tiny_config, tiny_set)
    plain.train()
    assert not same(whole, plain)
    stopped = trainer(tiny_config, richer, tmp_path)
    stopped.observer.interrupt_at = 4 + 3 + 2  # in the second epoch's first pass
    with pytest.raises(Interrupted):
        stopped.train()
    resumed = trainer(tiny_config, richer, tmp_path)
    assert resumed.resume()
    resumed.train()
    assert same(resumed, whole)
    with pytest.raises(InputError, match="trained on 20 extra images, the source now has 0"):
        trainer(tiny_config, tiny_set, tmp_path).resume()


def test_a_streamed_set_trains_to_the_same_weights(tiny_config, tiny_set, tmp_path, monkeypatch):
    config = begun_by_k_means(tiny_config, after=2)
    resident = trainer(config, with_extra(tiny_set))
    resident.train()
    np.save(tmp_path / "images.npy", tiny_set.images)
    mapped = replace(tiny_set, images=np.load(tmp_path / "images.npy", mmap_mode="r"))
    monkeypatch.setattr("dcdc.data.store._RESIDENT_BYTES", 0)
    streamed = trainer(config, with_extra(mapped))
    assert not streamed.steps[0].store.is_resident
    streamed.train()
    assert same(streamed, resident)
    assert streamed.history[-1]["acc"] == resident.history[-1]["acc"]


def test_after_an_interruption_the_last_finished_epoch_can_be_had(tiny_config, tiny_set):
    observer = Recorder()
    observer.interrupt_at = 2 * 6 + 2  # 48 images in batches of 16, for two heads: 6 steps an epoch
    interrupted = trainer(tiny_config, tiny_set, observer=observer)
    with pytest.raises(Interrupted):
        interrupted.train(keep_finished=True)
    straight = trainer(with_values(tiny_config, {"heads.epochs": 2}), tiny_set)
    straight.train()
    assert not same(interrupted, straight)
    assert interrupted.return_to_finished_epoch()
    assert same(interrupted, straight)
    assert (interrupted.epoch, interrupted.steps_done) == (2, 0)


def test_without_a_finished_epoch_there_is_none_to_return_to(tiny_config, tiny_set):
    observer = Recorder()
    observer.interrupt_at = 1
    interrupted = trainer(tiny_config, tiny_set, observer=observer)
    with pytest.raises(Interrupted):
        interrupted.train(keep_finished=True)
    assert not interrupted.return_to_finished_epoch()


def test_a_cluster_head_that_had_not_begun_starts_on_the_way_back(tiny_config, tiny_set):
    config = begun_by_k_means(tiny_config, after=3)
    observer = Recorder()
    observer.interrupt_at = 4  # in the second epoch of three steps
    interrupted = trainer(config, tiny_set, observer=observer)
    with pytest.raises(Interrupted):
        interrupted.train(keep_finished=True)
    before = interrupted.network.heads["cluster_head"].weight.detach().clone()
    assert interrupted.return_to_finished_epoch()
    assert not torch.equal(interrupted.network.heads["cluster_head"].weight, before)

"""A run learns from corrections: what was said holds, and images like the corrected ones follow."""

import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from corrected_runs import (
    N_IMAGES,
    answers_of,
    correct,
    kind_with_another,
    mixed_vectors,
    of_kind,
)
from dcdc.engine.edits import OUTSIDE
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError, Interrupted
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import read_plainly
from dcdc.refining import begun, lesson_of, refine, start_of
from dcdc.run import load, read_config, run
from dcdc.run_folder import RunFolder

QUICK = Overrides({"train.device": "cpu", "refine.epochs": 3})
KIND = np.arange(N_IMAGES) % 3


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refined(corrected, new, overrides=QUICK, **how):
    folder = RunFolder.create(new)
    result, _ = refine(RunFolder.open(corrected), overrides, folder=folder, **how)
    return result


@pytest.fixture
def split_run(mixed_run):
    """Four images of kind 2 were moved into a cluster of their own."""
    correct(mixed_run, {"kind": "move", "to": 2, "rows": [2, 5, 8, 11]})
    return mixed_run


def test_other_images_of_a_new_cluster_follow_the_four_that_were_moved(split_run, tmp_path):
    before = contents(split_run)
    result = refined(split_run, tmp_path / "new")
    assert contents(split_run) == before
    own = result.model.predict(mixed_vectors()[0])  # by the network alone
    assert (own[KIND == 2] == 2).mean() > 0.9
    assert (own[KIND == 1] == 2).mean() < 0.1
    assert len(set(own[KIND == 0].tolist())) == 1
    new_images, new_kinds = mixed_vectors(90, seed=1)
    assert ((result.model.predict(new_images) == 2) == (new_kinds == 2)).mean() > 0.9
    assert result.metrics["scores"]["acc"] > 0.9
    assert load(tmp_path / "new").n_clusters == 3


def test_the_new_run_says_what_it_came_from(split_run, tmp_path):
    correct(split_run, {"kind": "name", "cluster": 2, "name": "owls"})
    refined(split_run, tmp_path / "new")
    told = RunFolder.open(tmp_path / "new").read_metrics()["refined"]
    assert told == {
        "source": str(split_run),
        "answers": answers_of(split_run).digest,
        "edits": {"move": 1, "name": 1},
        "labelled": 4,
        "learnt": 4,
        "outside": 0,
    }
    config = read_config(RunFolder.open(tmp_path / "new"))
    assert (config.n_clusters, config.network.sub_heads) == (3, 1)
    assert [phase.kind for phase in config.phases] == ["refine"]
    assert RunFolder.open(tmp_path / "new").read_names() == {2: "owls"}
    assert "learnt from 1 correction" in (tmp_path / "new" / "README.md").read_text()


def test_where_it_learns_nothing_it_does_not_pass(split_run, tmp_path, monkeypatch):
    """The tests above tell a run that learns from one that does not."""
    monkeypatch.setattr(
        "dcdc.engine.linear_discriminant.with_followers", lambda _, earlier, *__: earlier
    )
    own = refined(split_run, tmp_path / "new").model.predict(mixed_vectors()[0])
    assert (own[KIND == 2] == 2).mean() < 0.5


def test_merged_clusters_are_one_and_the_others_are_numbered_anew(split_run, tmp_path):
    refined(split_run, tmp_path / "three")
    names = {0: "a", 1: "b", 2: "c"}
    RunFolder.open(tmp_path / "three").write_names(names)
    (far,) = set(of_kind(tmp_path / "three", 0))
    others = [cluster for cluster in range(3) if cluster != far]
    correct(tmp_path / "three", {"kind": "merge", "clusters": others[1:], "into": others[0]})
    result = refined(tmp_path / "three", tmp_path / "two")
    assert result.config.n_clusters == 2
    kept = sorted([far, others[0]])
    known = RunFolder.open(tmp_path / "two").read_names()
    assert known == {new: names[old] for new, old in enumerate(kept)}
    own = result.model.predict(mixed_vectors()[0])
    assert ((own == kept.index(far)) == (KIND == 0)).all()


def test_parts_of_a_split_are_clusters_and_one_at_the_wrong_side_comes_back(mixed_run, tmp_path):
    """All of kind 2 and one of kind 1 were put into the part."""
    answers = answers_of(mixed_run)
    rows = [1, *range(2, len(answers.names), 3)]
    part = [[row, answers.names[row]] for row in rows]
    correct(mixed_run, {"kind": "split", "cluster": int(answers.clusters[2]), "parts": [part]})
    result = refined(mixed_run, tmp_path / "new")
    own = result.model.predict(mixed_vectors()[0])
    by_kind = [set(own[kind::3].tolist()) for kind in range(3)]
    assert [len(found) for found in by_kind] == [1, 1, 1]
    assert len(set.union(*by_kind)) == result.config.n_clusters == 3


def test_what_was_said_before_is_not_forgotten(split_run, tmp_path):
    """The second round says nothing of the four, and they keep their labels all the same."""
    refined(split_run, tmp_path / "one")
    cluster = int(answers_of(tmp_path / "one").clusters[1])
    correct(tmp_path / "one", {"kind": "move", "to": cluster, "rows": [14]})
    taught = lesson_of(RunFolder.open(tmp_path / "one"))
    assert taught.labelled.tolist() == [2, 5, 8, 11, 14]
    refined(tmp_path / "one", tmp_path / "two")
    answers = answers_of(tmp_path / "two").clusters
    assert answers[14] == cluster
    assert len({int(answers[row]) for row in (2, 5, 8, 11)}) == 1


def test_a_label_holds_even_where_the_network_does_not_believe_it(split_run, tmp_path):
    (far,) = set(of_kind(split_run, 0))
    correct(split_run, {"kind": "move", "to": 1 - far, "rows": [0]})
    overrides = Overrides({"refine.epochs": 1, "refine.label_share": 0.0})
    result = refined(split_run, tmp_path / "new", overrides)
    answers = answers_of(tmp_path / "new").clusters
    assert answers[0] != answers[3]
    table = RunFolder.open(tmp_path / "new").read_assignments()
    shares = result.assigned.probabilities
    assert table["confidence"].to_numpy()[0] == pytest.approx(shares[0, answers[0]])
    second = table["runner_up"].to_numpy()[0]
    assert second != answers[0]


def test_images_that_belong_to_none_have_no_cluster_and_teach_nothing(split_run, tmp_path):
    correct(split_run, {"kind": "outside", "rows": [0, 1]})
    result = refined(split_run, tmp_path / "new")
    assert answers_of(tmp_path / "new").clusters[:2].tolist() == [OUTSIDE, OUTSIDE]
    metrics = result.metrics
    assert metrics["refined"]["outside"] == 2
    assert sum(metrics["health"]["sizes"]) == N_IMAGES - 2


def test_pairs_are_kept_in_the_answers(mixed_run, tmp_path):
    (far,) = set(of_kind(mixed_run, 0))
    correct(
        mixed_run,
        {"kind": "together", "rows": [0, 1]},
        {"kind": "move", "to": far, "rows": [0]},
        {"kind": "apart", "rows": [4, 5]},
    )
    refined(mixed_run, tmp_path / "new")
    answers = answers_of(tmp_path / "new").clusters
    assert answers[0] == answers[1] == far
    assert answers[4] != answers[5]


@pytest.mark.parametrize("whole_network", [False, True])
def test_images_and_their_network(mixed_image_run, tmp_path, whole_network):
    """The head learns alone on features that are computed once, or the backbone with it."""
    folder, kind = RunFolder.open(mixed_image_run), kind_with_another(mixed_image_run)
    correct(mixed_image_run, {"kind": "move", "to": 2, "rows": [kind + 3 * n for n in range(4)]})
    before = folder.read_model(folder.read_config())
    result = refined(mixed_image_run, tmp_path / "new", whole_network=whole_network)
    own = result.assigned.probabilities.argmax(axis=1)
    is_of_kind = np.arange(len(own)) % 3 == kind
    assert (own[is_of_kind] == 2).mean() > 0.9
    assert (own[~is_of_kind] == 2).mean() < 0.1
    after = load(tmp_path / "new", "cpu").network.state_dict()
    backbone = [name for name in after if name.startswith("backbone.")]
    assert all(after[name].equal(before[name]) for name in backbone) != whole_network
    assert len(RunFolder.open(tmp_path / "new").read_sample()["rows"]) == len(own)


def test_one_seed_one_result(split_run, tmp_path):
    first = refined(split_run, tmp_path / "one").assigned.probabilities
    second = refined(split_run, tmp_path / "two").assigned.probabilities
    assert np.array_equal(first, second)


class StopAfter(SilentObserver):
    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_epoch(self, record):
        if record["epoch"] == self.n_epochs:
            os.kill(os.getpid(), signal.SIGTERM)


def test_it_goes_on_after_a_kill_to_the_bit(split_run, tmp_path):
    whole = refined(split_run, tmp_path / "whole").assigned.probabilities
    with pytest.raises(Interrupted):
        refined(split_run, tmp_path / "cut", observer=StopAfter(1))
    folder = RunFolder.open(tmp_path / "cut")
    shutil.rmtree(split_run)  # it needs the corrected run no more
    found = begun(folder)
    _, data = load_images_of(folder)
    result = run(read_config(folder), data, folder=folder, resume=True, **found._asdict())
    assert np.array_equal(result.assigned.probabilities, whole)
    assert answers_of(tmp_path / "cut").clusters[2] == 2


def load_images_of(folder):
    config = read_config(folder)
    return config, read_plainly(config.data, 512)


def test_a_kill_before_the_first_checkpoint_begins_again(split_run, tmp_path):
    whole = refined(split_run, tmp_path / "new").assigned.probabilities
    folder = RunFolder.open(tmp_path / "new")
    for name in ("checkpoint", "model.safetensors", "assignments.parquet", "metrics.json"):
        path = tmp_path / "new" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    config, data = load_images_of(folder)
    result = run(config, data, folder=folder, resume=True, **begun(folder)._asdict())
    assert np.array_equal(result.assigned.probabilities, whole)
    shutil.rmtree(tmp_path / "new" / "checkpoint")
    shutil.rmtree(split_run)
    with pytest.raises(InputError, match="stopped before its first checkpoint"):
        begun(folder)


def test_a_network_with_several_heads_goes_on_with_none_of_them(vector_run):
    folder = RunFolder.open(vector_run)
    config = replace(read_config(folder), n_clusters=5)
    weights = start_of(folder.read_model(folder.read_config()), config)
    heads = {name: tuple(t.shape) for name, t in weights.items() if name.startswith("heads.")}
    assert heads == {"heads.cluster_head.weight": (5, 12), "heads.cluster_head.bias": (5,)}
    assert "answering" not in weights
    assert torch.equal(
        weights["directions.middle"], folder.read_model(folder.read_config())["directions.middle"]
    )


def test_vectors_have_no_whole_network(split_run, tmp_path):
    with pytest.raises(InputError, match="no whole network"):
        refined(split_run, tmp_path / "new", whole_network=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("whole_network", [False, True])
def test_a_frozen_pretrained_backbone_stays_as_it_is_or_trains(frozen_run, tmp_path, whole_network):
    folder = RunFolder.open(frozen_run)
    before = folder.read_model(folder.read_config())
    answers = answers_of(frozen_run)
    to = int(answers.clusters[1] == 0)
    correct(frozen_run, {"kind": "move", "to": to, "rows": [1]})
    result = refined(frozen_run, tmp_path / "new", whole_network=whole_network)
    assert answers_of(tmp_path / "new").clusters[1] == to
    assert result.config.network.frozen != whole_network
    after = load(tmp_path / "new", "cpu").network.state_dict()
    backbone = [name for name in after if name.startswith("backbone.")]
    assert backbone
    assert all(after[name].equal(before[name]) for name in backbone) != whole_network

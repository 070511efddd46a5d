"""A run of 0.1.0 is read as it was: `kept_run_0_1_0` holds what `dcdc fit` of that version left.

Its weights would be too large to keep. Tests fill them by a formula, under the names that they had;
what the model answers then was recorded with 0.1.0.
"""

import hashlib
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import dcdc
from dcdc.config import from_mapping, with_values
from dcdc.config.renamed import upgraded
from dcdc.data import from_arrays
from dcdc.engine.checkpoints import list_checkpoints, load_checkpoint
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel
from dcdc.report import write_report
from dcdc.report.facts import read_facts
from dcdc.run import read_config, run
from dcdc.run_folder import RunFolder

KEPT = Path(__file__).parent / "kept_run_0_1_0"

ANSWERS = [
    [0.5269994, 0.0737321, 0.3992685],
    [0.8922406, 0.1055629, 0.0021965],
    [0.1532988, 0.1391738, 0.7075275],
    [0.4228720, 0.0691011, 0.5080269],
    [0.9197095, 0.0790588, 0.0012316],
    [0.1806525, 0.0804448, 0.7389027],
    [0.3315553, 0.0404829, 0.6279618],
    [0.9288059, 0.0698865, 0.0013077],
    [0.1950426, 0.0726590, 0.7322984],
]
FEATURE_SUMS = [168.86142, 241.89432, 214.93695, 180.55835, 242.30336]


def kept_images(n_images: int) -> np.ndarray:
    """8 x 8 grey images of three kinds; the run was trained on the first 24."""
    place, down, across = np.mgrid[:n_images, :8, :8]
    kinds = (down % 2, across % 2, (down // 2 + across // 2) % 2)
    pattern = np.choose(place % 3, kinds)
    return (170 * pattern + (place * 37 + down * 11 + across * 5) % 60).astype(np.uint8)


def filled_weights() -> dict[str, torch.Tensor]:
    network = json.loads((KEPT / "config.json").read_text())["network"]
    tensors = {}
    shapes = json.loads((KEPT / "weights.json").read_text())
    for place, (name, shape) in enumerate(sorted(shapes.items())):
        owner, _, kind = name.rpartition(".")
        numbers = torch.arange(math.prod(shape), dtype=torch.float64)
        wave = torch.sin(0.7 * numbers**1.5 + place).reshape(shape)
        if owner == "normalise":
            found = torch.tensor(network[kind]).reshape(shape)
        elif kind == "num_batches_tracked":
            found = torch.tensor(7)
        elif kind == "running_var":
            found = 1 + wave / 2
        elif len(shape) > 1:
            found = 2 * wave / math.sqrt(math.prod(shape[1:]))
        else:
            found = (kind == "weight") + wave / 4
        tensors[name] = found if kind == "num_batches_tracked" else found.float()
    return tensors


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    for name in ("config.json", "history.jsonl", "metrics.json", "README.md"):
        shutil.copy(KEPT / name, path)
    for name in ("assignments.parquet", "sample.npz"):
        shutil.copy(KEPT / name, path)
    save_file(filled_weights(), path / "model.safetensors")
    return path


def test_its_model_answers_as_it_did(kept):
    model = dcdc.load(kept, "cpu")
    found = model.predict_proba(kept_images(9))
    np.testing.assert_allclose(found, ANSWERS, atol=2e-6)
    features = model.transform(kept_images(5))
    np.testing.assert_allclose(features.sum(axis=1), FEATURE_SUMS, rtol=1e-5)
    assert model.metrics["scores"]["acc"] == 1
    assert model.training_features().shape == (24, 256)


def test_its_settings_are_read_by_the_names_of_today(kept):
    config = read_config(RunFolder.open(kept))
    assert (config.n_clusters, config.network.backbone, config.train.seed) == (3, "small", 5)
    assert config.phases == (
        Contrast(epochs=2, batch_size=8),
        Heads(
            epochs=4,
            batch_size=8,
            n_repeats=2,
            over_clustering_first=1.0,
            initialisation="k-means",
            neighbours=2,
        ),
        SelfLabel(epochs=2, threshold=0.5),
    )
    assert config.epochs == 8


def test_its_model_can_be_saved_anew(kept, tmp_path):
    saved = dcdc.load(kept, "cpu").save(tmp_path / "model")
    assert json.loads((saved / "config.json").read_text())["format"] == 2
    with safe_open(saved / "model.safetensors", "pt") as file:
        names = set(file.keys())
    assert not any(name.startswith(("trunk", "projection", "parts")) for name in names)
    found = dcdc.load(saved, "cpu").predict_proba(kept_images(9))
    np.testing.assert_allclose(found, ANSWERS, atol=2e-6)


@pytest.mark.slow
def test_a_report_is_made_of_it(kept):
    folder = RunFolder.open(kept)
    facts = read_facts(folder)
    assert [line["phase"] for line in facts.history] == (
        ["instance"] * 2 + ["heads"] * 4 + ["self_label"] * 2
    )
    page = write_report(folder, from_arrays(kept_images(24), np.arange(24) % 3))
    assert "heads.neighbours = 2" in page.read_text()


def old_checkpoint(path: Path, names: list[str], term_counts: dict[str, int]) -> Path:
    """As 0.1.0 wrote it, but for what its tensors hold: each its own number."""
    path.mkdir()
    tensors = {name: torch.tensor([place]) for place, name in enumerate(names)}
    save_file(tensors, path / "tensors.safetensors")
    digest = hashlib.sha256((path / "tensors.safetensors").read_bytes()).hexdigest()
    extra = {"term_counts": term_counts, "n_images": 24, "n_extra": 0}
    state = {"format": 1, "epoch": 4, "step": 0, "extra": extra, "sha256": digest}
    (path / "state.json").write_text(json.dumps(state))
    return path


@pytest.mark.parametrize(("kind", "phase"), [("contrast", "contrast"), ("prediction", "byol")])
def test_its_checkpoints_have_what_a_training_goes_on_with(tmp_path, kind, phase):
    """The same tensors, by name, as today's training of the same settings writes."""
    written = json.loads((KEPT / "config.json").read_text())
    written["instance"]["kind"] = kind
    del written["format"]
    kept_all = {"train.checkpoint_every": 1, "train.keep_checkpoints": 20}
    config = with_values(from_mapping(upgraded(written)), kept_all)
    assert config.phase_names == (phase, "heads", "self_label")
    folder = RunFolder.create(tmp_path / "run")
    run(config, from_arrays(kept_images(24)), folder=folder)
    todays = load_checkpoint(list_checkpoints(folder.path / "checkpoint")[3])
    assert todays.epoch == 4

    names = json.loads((KEPT / "checkpoints.json").read_text())[kind]
    ours = [*names, "terms/instance", "terms/cluster_head/sample_view"]
    counts = {"instance": 3, "cluster_head/sample_view": 2}
    old = load_checkpoint(old_checkpoint(tmp_path / "old", ours, counts))
    terms = {f"terms/{phase}", "terms/cluster_head/sample_view"}
    assert old.tensors.keys() >= todays.tensors.keys() | terms
    # One optimiser for all phases kept the moments of the phase before; today each has its own.
    more = old.tensors.keys() - todays.tensors.keys() - terms
    assert all(name.startswith("optimiser/") for name in more)
    assert len(old.tensors) == len(ours)
    assert old.extra["term_counts"] == {phase: 3, "cluster_head/sample_view": 2}
    place = int(old.tensors["network/backbone.layers.0.weight"])
    assert ours[place] == "network/trunk.layers.0.weight"

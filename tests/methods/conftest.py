"""What methods that are runs of the engine hand to it."""

import numpy as np
import pytest

from dcdc.data import from_arrays
from dcdc.methods import Context, by_run, find_method


@pytest.fixture
def config_of(monkeypatch):
    """The config that a method hands to `run`."""
    given = []

    def caught(config, *_, **__):
        given.append(config)
        raise InterruptedError

    def ask(method, images, n_clusters=10, device="cpu", **settings):
        with monkeypatch.context() as patch:
            patch.setattr(by_run, "run", caught)
            with pytest.raises(InterruptedError):
                find_method(method).cluster(images, n_clusters, 3, Context(device), **settings)
        return given[-1]

    return ask


@pytest.fixture
def colour():
    """Images of noise."""

    def make(side, n_images=600, channels=3):
        pixels = np.random.default_rng(0).integers(0, 256, (n_images, side, side, channels))
        return from_arrays(pixels.astype(np.uint8))

    return make

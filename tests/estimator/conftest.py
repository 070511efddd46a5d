import pytest

from dcdc import DCDC

SETTINGS = {"heads.over_clustering_first": 2, "network.over_clusters": 6, "heads.n_repeats": 2}


@pytest.fixture(scope="session")
def estimator():
    """A short training on tiny images, with changes."""

    def make(**changes) -> DCDC:
        given = {
            "n_clusters": 3,
            "epochs": 4,
            "batch_size": 16,
            "device": "cpu",
            "settings": SETTINGS,
        }
        return DCDC(**(given | changes))

    return make

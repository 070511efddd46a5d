import re

import pytest

from dcdc.config import to_mapping
from dcdc.engine.model_card import model_card, public_source
from dcdc.prepare.resolve import resolve

METRICS = {
    "n_images": 1797,
    "n_clusters": 3,
    "scores": {"acc": 0.9561, "nmi": 0.9, "ari": 0.8},
    "baselines": {"K-Means on pixels": {"acc": 0.5, "nmi": 0.4, "ari": 0.3}},
    "health": {"active_clusters": 3, "mean_confidence": 0.9},
}


@pytest.fixture
def config(tiny_config, tiny_set):
    return to_mapping(resolve(tiny_config, tiny_set))


def test_the_front_matter_is_what_the_hub_reads(config):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra hub")
    card = model_card("tiny", 'dcdc.load("tiny")', config)
    front = yaml.safe_load(re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)[1])
    assert front["library_name"] == "dcdc"
    assert front["pipeline_tag"] == "image-feature-extraction"
    assert "image-clustering" in front["tags"]


def test_a_card_says_data_scores_settings_names_limits_and_how_to_load(config):
    card = model_card("tiny", 'dcdc.load("tiny")', config, METRICS, {0: "cats", 2: "a|b\n<i>"})
    for wanted in (
        "\n# tiny\n",
        "tiny.npz, 1,797 images",
        "| dcdc | 0.956 | 0.900 | 0.800 |",
        "| K-Means on pixels | 0.500 |",
        "| backbone | small |",
        "| phases | heads, 4 epochs of batches of 16 |",
        "| 0 | cats |",
        "| 2 | a\\|b &lt;i> |",
        "## Use and limits",
        'model = dcdc.load("tiny")',
        "N x 8 x 8 x 1",
    ):
        assert wanted in card, wanted


def test_a_card_leaves_out_what_is_not_known(config):
    card = model_card("tiny", "", config)
    assert "## Scores" not in card
    assert "## Clusters" not in card
    assert "Not scored" in model_card("tiny", "", config, METRICS | {"scores": None})
    assert "## Scores" not in model_card("tiny", "", config, {})


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("digits", "digits"),
        ("/home/somebody/secret/photos", "photos"),
        ("photos/", "photos"),
        ("../images.parquet", "images.parquet"),
        ("cifar10:/home/somebody", "cifar10"),
        ("cifar10@train", "cifar10@train"),
        ("", ""),
    ],
)
def test_a_source_is_named_without_its_folders(source, public):
    assert public_source(source) == public

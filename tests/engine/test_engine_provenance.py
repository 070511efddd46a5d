"""Where features come from, said wherever scores stand."""

import pytest

from dcdc.config import to_mapping
from dcdc.engine.model_card import model_card
from dcdc.engine.provenance import VECTORS, is_pretrained, mark, short_name
from dcdc.networks import feature_vectors
from dcdc.prepare.resolve import resolve

LITE = {
    "name": "efficientnet-lite0",
    "frozen": True,
    "pretrained": {
        "name": "EfficientNet-Lite0",
        "licence": "Apache-2.0",
        "trained_on": "ImageNet-1k",
        "uses_labels": True,
    },
}
DINO = {
    "name": "hf:facebook/dinov2-small@main",
    "frozen": False,
    "pretrained": {
        "name": "hf:facebook/dinov2-small@main",
        "licence": "unknown",
        "trained_on": "unknown",
        "uses_labels": None,
    },
}
GIVEN = {"name": "vectors", "pretrained": None}
SCRATCH = {"name": "resnet18", "pretrained": None}


def test_the_word_for_vectors_is_the_network_s():
    assert VECTORS == feature_vectors.VECTORS


@pytest.mark.parametrize(
    ("backbone", "wanted"),
    [
        (None, None),
        (SCRATCH, None),
        (
            LITE,
            "features of EfficientNet-Lite0, frozen: weights trained on ImageNet-1k with labels "
            "(Apache-2.0)",
        ),
        (
            DINO,
            "features of hf:facebook/dinov2-small@main, fine-tuned: weights trained on unknown "
            "data perhaps with labels (licence unknown)",
        ),
        (GIVEN, "on given feature vectors: the network that made them may have learnt from labels"),
    ],
)
def test_pretrained_weights_are_marked_and_others_are_not(backbone, wanted):
    assert mark(backbone) == wanted


def test_a_column_of_a_table_names_the_origin():
    names = [short_name(each) for each in (None, SCRATCH, GIVEN, LITE)]
    assert names == ["", "resnet18, from scratch", "given vectors", "EfficientNet-Lite0, frozen"]
    assert [is_pretrained(each) for each in (None, SCRATCH, GIVEN, LITE)] == [False] * 3 + [True]


def card_of(config, backbone) -> str:
    scores = {"acc": 0.9, "nmi": 0.8, "ari": 0.7}
    metrics = {"n_images": 24, "n_clusters": 3, "scores": scores, "backbone": backbone}
    return model_card("tiny", 'dcdc.load("tiny")', config, metrics)


@pytest.fixture
def config(tiny_config, tiny_set):
    return to_mapping(resolve(tiny_config, tiny_set))


def test_a_card_names_the_backbone_its_licence_and_its_labels(config):
    card = card_of(config, LITE)
    assert "license: apache-2.0\n" in card.partition("\n# ")[0]
    assert "- frozen-backbone\n" in card
    assert "EfficientNet-Lite0 (`efficientnet-lite0`), kept frozen" in card
    assert "weights trained on ImageNet-1k with labels (Apache-2.0). Labels trained these" in card
    assert "with weights trained before on ImageNet-1k with labels, against their classes" in card
    assert "found without labels" not in card


def test_a_card_of_the_hub_s_weights_names_their_repository_and_no_licence_it_does_not_know(config):
    front = card_of(config, DINO).partition("\n# ")[0]
    assert "base_model: facebook/dinov2-small\n" in front
    assert "license" not in front
    folder = {**DINO, "name": "hf:./facebook/dinov2-small"}
    assert "base_model" not in card_of(config, folder)


def test_a_card_of_vectors_says_what_the_model_takes(config):
    own = {
        **config,
        "data": {**config["data"], "size": None, "n_features": 12},
        "network": {**config["network"], "backbone": "vectors", "mean": None},
    }
    card = card_of(own, GIVEN)
    for wanted in (
        "pipeline_tag: feature-extraction\n",
        "- feature-vectors\n",
        "Groups feature vectors of 12 numbers into 3 clusters, found by",
        "tiny.npz, 24 vectors.",
        "| backbone | none: features are given |",
        "model.predict(vectors)  # float32, N x 12",
    ):
        assert wanted in card, wanted
    assert "None" not in card


def test_a_card_from_scratch_says_nothing_of_weights(config):
    card = card_of(config, SCRATCH)
    assert "## Backbone" not in card
    assert "license" not in card
    assert "found without labels by" in card

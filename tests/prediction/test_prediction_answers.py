"""Rows against a slow reading of the same images."""

from dataclasses import replace

import numpy as np
import pytest

from dcdc.data import load_images
from dcdc.engine.out_of_distribution import out_of_distribution_score_of
from dcdc.errors import InputError
from dcdc.prediction.answers import Answers, images_for, predict_rows

pytestmark = pytest.mark.usefixtures("small_blocks")


def rows_of(model, source, **how):
    blocks = list(predict_rows(model, images_for(model, source), **how))
    return [row for block in blocks for row in block.to_pylist()]


def test_every_image_has_its_row_in_order(model, photos):
    image_set = load_images(photos, size=8)
    probabilities = model.predict_proba(image_set.images)
    scores = out_of_distribution_score_of(model.training_features()).score(
        model.transform(image_set.images)
    )
    rows = rows_of(model, photos)
    assert [row["name"] for row in rows] == list(image_set.names)
    for row, shares, score, target in zip(
        rows, probabilities, scores, image_set.targets, strict=True
    ):
        second, first = np.argsort(shares)[-2:]
        assert (row["cluster"], row["runner_up"]) == (first, second)
        assert row["confidence"] == pytest.approx(shares[first], abs=1e-5)
        assert row["runner_up_confidence"] == pytest.approx(shares[second], abs=1e-5)
        assert row["out_of_distribution_score"] == pytest.approx(score, abs=1e-2)
        assert row["out_of_distribution"] == (row["out_of_distribution_score"] > 1)
        assert row["target"] == image_set.class_names[target]
    assert "cluster_name" not in rows[0]


def test_noise_is_out_of_distribution(model, photos):
    rows = rows_of(model, photos)
    assert rows[0]["out_of_distribution"]
    assert sum(row["out_of_distribution"] for row in rows) <= 2


def test_without_training_features_nothing_is_said_of_distribution(model, photos):
    model.training_features = lambda: None
    rows = rows_of(model, photos)
    assert all(
        row["out_of_distribution"] is row["out_of_distribution_score"] is None for row in rows
    )


def test_names_of_clusters_are_told(model, photos):
    model.names = {0: "cats", 2: "dogs"}
    rows = rows_of(model, photos)
    assert [row["cluster_name"] for row in rows] == [
        {0: "cats", 2: "dogs"}.get(row["cluster"]) for row in rows
    ]


def test_a_bad_image_is_refused_or_left_out(model, photos):
    whole = rows_of(model, photos)
    files = sorted(photos.rglob("*.png"))
    for index in (3, *range(20, 30)):  # a whole block among them
        files[index].write_bytes(b"torn")
    with pytest.raises(InputError, match=r"cannot read image kind-0/09.png in .* on_bad = 'skip'"):
        rows_of(model, photos)
    skipped = []
    kept = rows_of(model, photos, on_bad="skip", on_skip=skipped.append)
    names = {row["name"]: row for row in kept}
    assert len(kept) == 37
    assert len(skipped) == 11
    for row in whole:
        if row["name"] in names:
            assert names[row["name"]]["cluster"] == row["cluster"]
            assert names[row["name"]]["target"] == row["target"]


def test_the_fingerprint_is_the_same_whatever_products_round(model, photos):
    """Or what was begun could not be gone on with on another machine, or on more threads."""
    answers = Answers(model, images_for(model, photos))
    first = answers.fingerprint()
    training = answers.out_of_distribution.training
    elsewhere = np.nextafter(training, np.float32(np.inf))
    answers.out_of_distribution = replace(answers.out_of_distribution, training=elsewhere)
    assert answers.fingerprint() == first


def test_the_fingerprint_follows_all_that_a_row_depends_on(model, photos):
    images = images_for(model, photos)
    first = Answers(model, images).fingerprint()
    assert Answers(model, images).fingerprint() == first
    seen = {first}
    model.names = {0: "cats"}
    seen.add(Answers(model, images).fingerprint())
    features = model.training_features()
    model.training_features = lambda: features[1:]
    seen.add(Answers(model, images).fingerprint())
    model.network.heads["cluster_head"].bias.data[0] += 1e-6
    seen.add(Answers(model, images).fingerprint())
    assert len(seen) == 4

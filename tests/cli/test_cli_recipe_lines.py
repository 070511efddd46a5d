"""A recipe as a person reads it: how long it is, and what changes each setting."""

from dcdc.cli.recipe_lines import batch, explained, length
from dcdc.config import with_values
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.prepare.suggestions import suggest


def test_the_length_names_every_phase():
    assert length(preset("cifar10-paper")) == "200 epochs"
    expected = "200 epochs of instance contrast, 20 of heads, 15 of self-labels"
    assert length(preset("cifar10")) == expected


def test_the_batch_is_that_of_the_heads():
    assert batch(preset("cifar10-paper")) == "50"
    ours = preset("stl10")
    assert batch(ours) == "512"
    assert batch(with_values(ours, {"heads.batch_size": None})) == "256"


def test_what_was_chosen_is_explained_with_what_changes_it():
    config = suggest(n_images=500, side=32, channels=3, n_clusters=12, on_gpu=False)
    lines = dict(explained(config))
    assert lines[f"batch of {heads_of(config).batch_size} images"] == "--batch-size"
    (perturbed,) = (text for text in lines if text.startswith("perturbed"))
    assert perturbed == "perturbed by crop_scale, brightness, contrast, saturation, hue, grey, flip"
    grey = explained(suggest(n_images=500, side=32, channels=1, n_clusters=12, on_gpu=False))
    assert grey[-1][0] == "perturbed by rotation, shift, scale, shear, noise"
    assert lines["3 perturbed copies of each"] == "--set heads.n_repeats="
    first = "heads: 125 epochs, 62 of them for features, then K-Means"
    assert lines[first] == "--epochs, --set heads.over_clustering_first="
    slow = dict(explained(suggest(n_images=5_000, side=32, channels=3, n_clusters=9, on_gpu=False)))
    assert slow["heads: 3 epochs, from K-Means"] == "--epochs"
    assert "one perturbed copy of each" in slow
    assert "backbone patches" in slow


def test_every_phase_has_its_line_in_its_turn():
    photos = explained(suggest(n_images=13_000, side=96, channels=3, n_clusters=10, on_gpu=True))
    assert photos[-4:-1] == [
        ("instance contrast: 492 epochs", "--set contrast.epochs="),
        ("heads: 20 epochs, from K-Means", "--epochs"),
        ("self-labels: 15 epochs", "--set self_label.epochs="),
    ]

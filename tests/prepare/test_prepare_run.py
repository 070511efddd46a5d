"""One way to a run, for the command line and for Python: which recipe, and what is laid over it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcdc import DCDC
from dcdc.cli import app
from dcdc.config import DataConfig, differences, with_values
from dcdc.data import from_arrays, load_images
from dcdc.errors import InputError
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads, heads_of
from dcdc.prepare import prepare_run as module
from dcdc.prepare.overrides import Overrides, again
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import suggest_for

ON_CPU = {"train.device": "cpu"}


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


@pytest.fixture(scope="module")
def photos():
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (600, 32, 32, 3), np.uint8)
    return from_arrays(images, targets=np.arange(600) % 10)


def not_read(*_):
    pytest.fail("the images were read")


def test_a_built_in_set_has_the_preset_of_its_name(digits):
    wanted = resolve(with_values(preset("digits"), ON_CPU), digits)
    by_name = prepare_run("digits", Overrides(ON_CPU))
    assert (by_name.recipe, by_name.passed_over) == ("digits", None)
    assert by_name.config == with_values(wanted, {"data.source": "digits"})
    assert np.array_equal(by_name.images.images, digits.images)
    by_images = prepare_run(digits, Overrides(ON_CPU))
    assert by_images.recipe == "digits"
    assert by_images.config == wanted
    assert by_images.images is digits


def test_a_preset_that_is_asked_for_goes_before_that_of_the_name(digits, tiny_set):
    values = ON_CPU | {"heads.batch_size": 16, "n_clusters": 3}
    asked = prepare_run(tiny_set, Overrides(values, "digits"))
    assert asked.recipe == "digits"
    assert asked.config.network.backbone == "small"
    paper = prepare_run(
        digits, Overrides(ON_CPU | {"network.mean": None, "network.std": None}, "cifar10-paper")
    )
    assert paper.recipe == "cifar10-paper"
    assert paper.config.network.backbone == "resnet34"
    with pytest.raises(InputError, match=r"^unknown preset 'digit'; did you mean 'digits'\?"):
        prepare_run("digits", Overrides(preset="digit"), read=not_read)


def test_a_recipe_of_the_callers_own_has_no_name(tiny_config, tiny_set):
    prepared = prepare_run(tiny_set, Overrides({"heads.epochs": 2}, tiny_config))
    assert prepared.recipe is None
    assert prepared.config == resolve(with_values(tiny_config, {"heads.epochs": 2}), tiny_set)


def test_a_file_of_a_sets_name_is_not_that_set(tmp_path, monkeypatch, tiny_set):
    monkeypatch.chdir(tmp_path)
    Path("digits").mkdir()
    for source in (Path("digits"), "./digits"):
        asked = Overrides(ON_CPU | {"n_clusters": 3})
        prepared = prepare_run(source, asked, read=lambda *_: tiny_set)
        assert prepared.recipe is None


def test_images_that_no_preset_knows_suggest_their_settings(tiny_set):
    prepared = prepare_run(tiny_set, Overrides(ON_CPU))
    assert (prepared.recipe, prepared.passed_over) == (None, None)
    suggested = with_values(suggest_for(tiny_set, 3, "cpu"), ON_CPU)
    assert prepared.config == resolve(suggested, tiny_set)
    many = prepare_run(tiny_set, Overrides(ON_CPU | {"n_clusters": 5})).config
    assert many.network == replace(prepared.config.network)
    assert many.n_clusters == 5  # by which the suggestion is made


def test_a_recipe_for_a_gpu_is_passed_over_on_a_cpu(photos, monkeypatch):
    known = replace(photos, known_as="cifar10")
    prepared = prepare_run(known, Overrides(ON_CPU))
    assert (prepared.recipe, prepared.passed_over) == (None, "cifar10")
    assert prepared.config == prepare_run(photos, Overrides(ON_CPU)).config
    light = prepare_run(known, Overrides(ON_CPU | {"network.backbone": "small"}))
    assert (light.recipe, light.passed_over) == ("cifar10", None)
    phase = {"heads.learning_rate": 0.002}  # of the images' own recipe, not of the preset
    assert heads_of(prepare_run(known, Overrides(ON_CPU | phase)).config).learning_rate == 0.002
    monkeypatch.setattr(module, "has_gpu", lambda _: True)
    assert prepare_run(known, Overrides(ON_CPU)).recipe == "cifar10"


def test_overrides_are_laid_over_the_recipe_and_values_win_over_a_file(digits):
    file = {"n_clusters": 7, "heads": {"epochs": 9, "n_repeats": 2}}
    values = ON_CPU | {"heads.epochs": 10, "self_label.epochs": 0}
    config = prepare_run(digits, Overrides(values, mapping=file)).config
    heads = heads_of(config)
    assert (config.n_clusters, heads.epochs, heads.n_repeats) == (7, 10, 2)
    assert heads.over_clustering_first == 6  # 0.6 of 10: resolved once, after the overrides
    assert heads.batch_size == heads_of(preset("digits")).batch_size
    assert list(config.active_phases) == ["heads"]


def test_a_file_may_bring_phases_of_its_own(tiny_set):
    tables = [{"kind": "contrast", "epochs": 2, "batch_size": 16}, {"kind": "heads", "epochs": 3}]
    for chosen in (None, "digits"):
        overrides = Overrides(ON_CPU | {"heads.batch_size": 16}, chosen, {"phases": tables})
        config = prepare_run(tiny_set, overrides).config
        assert config.phases == (Contrast(epochs=2, batch_size=16), Heads(epochs=3, batch_size=16))


def test_phases_can_be_listed_over_a_suggestion(tiny_set):
    values = {"phases": ("contrast", "heads"), "contrast.epochs": 2, "contrast.batch_size": 16}
    config = prepare_run(tiny_set, Overrides(ON_CPU | values)).config
    suggested = prepare_run(tiny_set, Overrides(ON_CPU)).config
    assert config.phases == (Contrast(epochs=2, batch_size=16), *suggested.phases)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (Overrides({"heads.epoch": 3}), "unknown config key 'heads.epoch'"),
        (Overrides({"heads.epochs": "many"}), "heads.epochs = 'many' must be a whole number"),
        (Overrides({"heads.epochs": 0}), "heads.epochs = 0 must be at least 1"),
        (Overrides({"contrast.epochs": -1}), "contrast.epochs = -1 must be at least 0"),
        (Overrides({"n_clusters": 1}), "n_clusters = 1 must be at least 2"),
        (Overrides({"train.epochs": 3}), "'train.epochs' is called 'heads.epochs' now"),
        (Overrides({"network.backbone": "smal"}), "unknown backbone 'smal'; did you mean 'small'"),
        (Overrides({"heads.loss": "icc"}), "unknown loss 'icc'; did you mean 'iic'"),
        (Overrides({"phases": ("head",)}), "unknown phase 'head'; did you mean 'heads'"),
        (Overrides(mapping={"phases": [{"epochs": 3}]}), "is no table with a kind"),
        (Overrides(mapping={"phases": ["heads", {}]}), "'heads' is no table with a kind"),
        (Overrides({"byol.epochs": 1}, "digits"), "there is no phase byol in this recipe"),
    ],
)
def test_what_cannot_be_is_refused_before_the_images_are_read(overrides, message):
    with pytest.raises(InputError) as caught:
        prepare_run("photos", overrides, read=not_read)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_phase_that_the_suggestion_does_not_have_must_be_listed(tiny_set):
    with pytest.raises(InputError, match=r"no phase contrast .*such as contrast,heads$"):
        prepare_run(tiny_set, Overrides(ON_CPU | {"contrast.epochs": 1}))


def test_the_reader_is_told_what_to_read(tiny_set):
    asked = []

    def read(data, largest_side):
        asked.append((data, largest_side))
        return tiny_set

    values = ON_CPU | {"data.size": 8, "data.on_bad": "skip", "data.target": "none"}
    prepared = prepare_run("photos", Overrides(values), read=read)
    wanted = DataConfig(source="photos", size=8, target="none", on_bad="skip")
    assert asked == [(wanted, 32)]
    assert prepared.config.data == wanted


def test_the_caller_has_the_last_word_before_the_config_is_resolved(tiny_set):
    def adjust(config, images):
        assert config.network.mean is None
        assert images is tiny_set
        return with_values(config, {"heads.epochs": 2, "heads.over_clustering_first": 0.5})

    config = prepare_run(tiny_set, Overrides(ON_CPU), adjust=adjust).config
    assert (config.epochs, heads_of(config).over_clustering_first) == (2, 1)


def test_a_source_that_is_a_function_reads_itself_up_to_a_side(tiny_set):
    asked = []

    def source(side):
        asked.append(side)
        return tiny_set

    prepared = prepare_run(source, Overrides(ON_CPU))
    assert asked == [32]  # of a CPU
    assert prepared.images is tiny_set
    assert prepared.config == prepare_run(tiny_set, Overrides(ON_CPU)).config


def test_the_usual_backbone_is_fine_tuned_where_that_is_asked_for(monkeypatch):
    pytest.importorskip("efficientnet_lite_pytorch")
    monkeypatch.setenv("DCDC_BACKBONE", "efficientnet-lite0")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    values = ON_CPU | {"n_clusters": 2, "network.frozen": False}
    tuned = prepare_run(from_arrays(pixels), Overrides(values)).config
    named = values | {"network.backbone": "efficientnet-lite0"}
    assert tuned == prepare_run(from_arrays(pixels), Overrides(named)).config
    assert tuned.network.backbone_rate < 1  # as in `fine_tuned`
    assert not tuned.network.frozen


def test_the_same_overrides_given_again_say_the_same(digits):
    """For a run that is resumed: by another number they say what has changed."""
    for chosen in (None, "digits"):
        overrides = Overrides(ON_CPU | {"heads.over_clustering_first": 2}, chosen)
        stored = prepare_run(digits, overrides).config
        assert again(stored, Overrides()) == stored
        assert resolve(again(stored, overrides), digits) == stored
        longer = replace(overrides, values={**overrides.values, "self_label.epochs": 9})
        changed = resolve(again(stored, longer), digits)
        assert differences(changed, stored) == {"self_label.epochs": (9, 4)}


class Caught(Exception):  # noqa: N818 - a way out
    pass


@pytest.fixture
def caught(monkeypatch):
    """The config with which a training would begin."""
    found = []

    def run(config, *_, **__):
        found.append(config)
        raise Caught

    monkeypatch.setattr("dcdc.run.run", run)
    monkeypatch.setattr("dcdc.estimator.restarts.run", run)
    return found


@pytest.mark.parametrize(
    ("parameters", "flags"),
    [
        ({}, ()),
        (
            {"n_clusters": 5, "epochs": 6, "batch_size": 32, "random_state": 4},
            ("--clusters", "5", "--epochs", "6", "--batch-size", "32", "--seed", "4"),
        ),
        (
            {"preset": "digits", "settings": {"heads.loss": "iic", "augment.noise": 0.1}},
            ("--preset", "digits", "--set", "heads.loss=iic", "--set", "augment.noise=0.1"),
        ),
    ],
)
def test_python_and_the_command_line_come_to_the_same_settings(
    digits, caught, tmp_path, parameters, flags
):
    with pytest.raises(Caught):
        DCDC(**parameters).fit(digits)
    command = ["fit", "digits", *flags, "--run", str(tmp_path / "run"), "--quiet"]
    told = CliRunner().invoke(app, command)
    assert isinstance(told.exception, Caught), told.output
    by_python, by_command = caught
    assert differences(by_python, by_command) == {"data.source": ("", "digits")}
    assert by_python.train == by_command.train


def test_they_do_so_for_images_that_no_preset_knows(caught, tiny_file, tiny_set, tmp_path):
    with pytest.raises(Caught):
        DCDC(n_clusters=3).fit(tiny_set)
    command = ["fit", str(tiny_file), "--clusters", "3", "--run", str(tmp_path / "run"), "--quiet"]
    told = CliRunner().invoke(app, command)
    assert isinstance(told.exception, Caught), told.output
    by_python, by_command = caught
    assert differences(by_python, by_command) == {"data.source": ("", str(tiny_file))}

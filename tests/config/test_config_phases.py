"""A run's phases: an ordered list, by name or as tables, whose settings have the phase's name."""

import json

import pytest

from dcdc.config import (
    RunConfig,
    differences,
    flat,
    from_mapping,
    read_toml,
    to_mapping,
    with_settings,
    with_values,
)
from dcdc.config.phase_settings import kind_of, numbered
from dcdc.errors import InputError
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads
from dcdc.phases.self_label import SelfLabel

TWICE = ("contrast", "heads", "self_label", "heads-2")


def test_a_recipe_has_the_heads_alone_unless_it_says_more():
    config = RunConfig()
    assert config.phases == (Heads(),)
    assert config.phase_names == ("heads",)
    assert config.epochs == 200


def test_phases_are_in_the_order_in_which_they_are_listed():
    config = with_values(RunConfig(), {"phases": ("heads", "contrast", "self_label")})
    assert config.phase_names == ("heads", "contrast", "self_label")
    turned = with_values(config, {"phases": ("self_label", "heads")})
    assert turned.phases == (SelfLabel(), Heads())
    assert "phases" in differences(config, with_values(config, {"phases": ("contrast", "heads")}))


def test_a_listed_phase_keeps_its_settings_and_another_begins_with_its_defaults():
    config = with_values(RunConfig(), {"heads.epochs": 7})
    listed = with_values(config, {"phases": ("contrast", "heads"), "contrast.epochs": 3})
    assert listed.phases == (Contrast(epochs=3), Heads(epochs=7))
    assert with_values(listed, {"phases": ("heads",)}) == config


def test_the_same_kind_twice_has_a_number():
    values = {"phases": TWICE, "heads.epochs": 3, "heads-2.epochs": 5, "heads-2.neighbours": 4}
    config = with_values(RunConfig(), values)
    assert config.phase_names == TWICE
    first, second = (phase for phase in config.phases if isinstance(phase, Heads))
    assert (first.epochs, first.neighbours) == (3, 0)
    assert (second.epochs, second.neighbours) == (5, 4)
    assert config.epochs == 8  # the others have none
    assert list(config.active_phases) == ["heads", "heads-2"]


@pytest.mark.parametrize("listed", [("heads-2", "heads"), ("heads", "heads"), ("heads", "heads-3")])
def test_numbers_must_count_on(listed):
    with pytest.raises(InputError) as caught:
        with_values(RunConfig(), {"phases": listed})
    names = ",".join(listed)
    said = f"phases = '{names}' must number phases of one kind in order: write heads,heads-2"
    assert str(caught.value) == said


def test_kinds_are_numbered_from_the_second_on():
    names = numbered(["heads", "contrast", "heads", "heads"])
    assert names == ("heads", "contrast", "heads-2", "heads-3")
    assert {kind_of(name) for name in names} == {"heads", "contrast"}
    assert list(map(kind_of, numbered(["fix-match"] * 2))) == ["fix-match"] * 2
    with pytest.raises(InputError, match=r"unknown config key 'heads-two.epochs'"):
        with_values(RunConfig(), {"heads-two.epochs": 3})


def test_a_setting_of_a_phase_that_is_not_listed_says_how_to_list_it():
    for values in ({"contrast.epochs": 3}, {"heads-2.epochs": 3}):
        with pytest.raises(InputError) as caught:
            with_values(RunConfig(), values)
        (key,) = values
        name = key.partition(".")[0]
        said = f"there is no phase {name} in this recipe (heads): list it in phases, such as"
        assert said in str(caught.value)
        assert caught.value.parameter == key
    assert with_values(RunConfig(), {"phases": ("heads", "heads-2"), "heads-2.epochs": 3})


@pytest.mark.parametrize(
    ("names", "added", "listed"),
    [
        (("heads",), "contrast", "contrast,heads"),
        (("heads", "self_label"), "byol", "byol,heads,self_label"),
        (("contrast", "heads"), "self_label", "contrast,heads,self_label"),
        (("heads", "self_label"), "heads-2", "heads,self_label,heads-2"),
    ],
)
def test_the_list_that_is_proposed_has_features_first(names, added, listed):
    config = with_values(RunConfig(), {"phases": names})
    with pytest.raises(InputError, match=f"such as {listed}$"):
        with_values(config, {f"{added}.epochs": 1})
    assert with_settings(config, [f"phases={listed}", f"{added}.epochs=1"])


def test_an_unknown_kind_is_named_with_the_one_that_was_meant():
    with pytest.raises(
        InputError,
        match=r"^phases = 'contrst,heads' has an unknown phase 'contrst'; did you mean 'con",
    ):
        with_values(RunConfig(), {"phases": ("contrst", "heads")})
    with pytest.raises(
        InputError, match=r"^unknown config key 'contrst.epochs'; did you mean 'con"
    ):
        with_values(RunConfig(), {"contrst.epochs": 1})


def test_phases_are_typed_as_a_list_of_names():
    config = with_settings(RunConfig(), ["phases=contrast, heads", "contrast.epochs=2"])
    assert config.phases == (Contrast(epochs=2), Heads())
    assert with_settings(config, ["phases=heads"]).phases == (Heads(),)


TABLES = """
n_clusters = 4

[[phases]]
kind = "contrast"
epochs = 2

[[phases]]
kind = "heads"
epochs = 3

[[phases]]
kind = "heads"
epochs = 4
neighbours = 5
"""


@pytest.fixture
def from_text(tmp_path):
    def read(text, start=None):
        path = tmp_path / "run.toml"
        path.write_text(text)
        return from_mapping(read_toml(path), start)

    return read


def test_tables_are_all_the_phases_that_there_are(from_text):
    """Not laid over those of the preset, as other settings are."""
    start = with_values(RunConfig(), {"phases": ("heads", "self_label"), "heads.n_repeats": 9})
    config = from_text(TABLES, start)
    assert config.phases == (Contrast(epochs=2), Heads(epochs=3), Heads(epochs=4, neighbours=5))
    assert config.phase_names == ("contrast", "heads", "heads-2")


def test_a_section_in_toml_is_laid_over_the_phase_of_its_name(from_text):
    start = with_values(RunConfig(), {"phases": ("heads", "self_label"), "heads.n_repeats": 9})
    config = from_text('phases = ["self_label", "heads"]\n[heads]\nepochs = 2\n', start)
    assert config.phases == (SelfLabel(), Heads(epochs=2, n_repeats=9))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("epochs = 3", r"phases: {'epochs': 3} is no table with a kind"),
        ("kind = 3", "is no table with a kind"),
        ('kind = "head"', "unknown phase 'head'; did you mean 'heads'?"),
        ('kind = "heads"\nepoch = 3', "unknown config key 'heads.epoch'; did you mean"),
        ('kind = "heads"\nepochs = "many"', "heads.epochs = 'many' must be a whole number"),
        ('kind = "heads"\nepochs = -1', "heads.epochs = -1 must be at least 1"),
    ],
)
def test_a_wrong_table_is_named(from_text, table, message):
    with pytest.raises(InputError) as caught:
        from_text(f"[[phases]]\n{table}\n")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_and_names_cannot_be_mixed():
    with pytest.raises(InputError, match="'heads' is no table with a kind"):
        from_mapping({"phases": ["heads", {"kind": "contrast"}]})


@pytest.fixture
def twice():
    values = {"phases": TWICE, "contrast.epochs": 2, "self_label.epochs": 1, "heads-2.loss": "iic"}
    return with_values(RunConfig(), values)


def test_files_have_phases_as_tables_and_give_them_back(twice):
    plain = json.loads(json.dumps(to_mapping(twice)))
    kinds = [table["kind"] for table in plain["phases"]]
    assert kinds == ["contrast", "heads", "self_label", "heads"]
    assert from_mapping(plain) == twice


def test_flat_values_name_each_phase_and_give_them_back(twice):
    values = flat(twice)
    assert values["phases"] == TWICE
    assert (values["heads.loss"], values["heads-2.loss"]) == ("dcdc", "iic")
    assert with_values(RunConfig(), values) == twice


def test_differences_are_of_the_one_phase_alone(twice):
    ours = with_values(twice, {"heads-2.epochs": 9})
    assert differences(ours, twice) == {"heads-2.epochs": (9, 200)}
    without = with_values(twice, {"phases": TWICE[:3]})
    found = differences(without, twice)
    assert found["phases"] == (TWICE[:3], TWICE)
    assert found["heads-2.epochs"] == (None, 200)
    assert not any(key.startswith("heads.") for key in found)


@pytest.mark.parametrize(
    ("phases", "main"),
    [
        (("contrast", "heads"), "heads"),
        (("discriminate", "frozen_heads", "self_label"), "discriminate"),
    ],
)
def test_epochs_and_batch_alone_are_those_of_the_main_phase(phases, main):
    start = with_values(RunConfig(), {"phases": phases})
    config = with_values(start, {"epochs": 17, "batch_size": 34})
    assert config.main_phase == main
    assert config == with_values(start, {f"{main}.epochs": 17, f"{main}.batch_size": 34})


def test_epochs_of_a_phase_by_its_name_win_over_epochs_alone():
    both = {"heads.epochs": 5, "epochs": 17}
    assert with_values(RunConfig(), both) == with_values(RunConfig(), {"heads.epochs": 5})


def test_the_main_phase_is_found_after_phases_are_listed():
    values = {"epochs": 17, "phases": ("discriminate", "frozen_heads")}
    assert with_values(RunConfig(), values).phases[0].epochs == 17

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dcdc.config import RunConfig, flat, parse_settings, with_settings
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.presets import preset
from dcdc.report.reproduce import command, config_lines, setting_text

CONFIG = with_settings(
    RunConfig(),
    [
        "phases=contrast,heads,self_label,heads-2",
        "n_clusters=12",
        "data.source=digits",
        "network.mean=[0.305]",
        "network.std=[0.376]",
        "augment.crop_scale=0.2,1.0",
        "heads.learning_rate=1e-7",
        "network.sobel=true",
        "heads.order=joint",
        "contrast.epochs=3",
        "heads-2.neighbours=4",
    ],
)


def facts_of(make_facts, config: RunConfig, path: str = "runs/digits"):
    return make_facts([0, 1], n_clusters=2, config=flat(config), path=Path(path))


def arguments_in_a_shell(text: str) -> list[str]:
    """What a program called `dcdc` would be given."""
    script = f"dcdc() {{ printf '%s\\0' \"$@\"; }}\n{text}\n"
    output = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    return output.decode().split("\0")[:-1]


def test_the_command_gives_the_same_config(make_facts):
    arguments = arguments_in_a_shell(command(facts_of(make_facts, CONFIG)))
    assert arguments[:4] == ["fit", "digits", "--run", "runs/digits-again"]
    assert set(arguments[4::2]) == {"--set"}
    again = with_settings(RunConfig(), [f"data.source={arguments[1]}", *arguments[5::2]])
    assert again == CONFIG


def test_the_command_holds_whatever_preset_the_source_has(make_facts):
    arguments = arguments_in_a_shell(command(facts_of(make_facts, CONFIG)))
    asked = Overrides(parse_settings([f"data.source={arguments[1]}", *arguments[5::2]]))
    assert asked.over(preset("digits")) == CONFIG
    assert asked.alone() == CONFIG


def test_quotes_and_blanks_survive_the_shell(make_facts):
    source = """/my photos/it's "here"; rm $HOME <b>"""
    config = replace(CONFIG, data=replace(CONFIG.data, source=source))
    arguments = arguments_in_a_shell(command(facts_of(make_facts, config, "runs/a b'c")))
    assert arguments[1] == source
    assert arguments[3] == "runs/a b'c-again"


def test_images_from_python_have_no_command(make_facts):
    config = replace(CONFIG, data=replace(CONFIG.data, source=""))
    assert command(facts_of(make_facts, config)) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (3, "3"),
        ((0.2, 1.0), "[0.2, 1.0]"),
        (("contrast", "heads-2"), '["contrast", "heads-2"]'),
        ("k-means", "k-means"),
        ("true", '"true"'),
        ("a, b", '"a, b"'),
    ],
)
def test_values_as_a_person_types_them(value, text):
    assert setting_text(value) == text


def test_every_key_has_its_line(make_facts):
    lines = config_lines(facts_of(make_facts, CONFIG))
    assert "n_clusters = 12" in lines
    assert "augment.crop_scale = [0.2, 1.0]" in lines
    assert "heads-2.neighbours = 4" in lines
    assert len(lines) == len(flat(CONFIG))

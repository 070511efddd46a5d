"""Config files and values that would hang or end in a traceback."""

import os

import pytest

from dcdc.config import parse_settings, read_toml
from dcdc.errors import InputError

DEEP = "[" * 5000 + "]" * 5000


def test_a_config_file_that_is_deep_endless_or_a_pipe(tmp_path):
    file = tmp_path / "config.toml"
    for content, why in ((f"a={DEEP}", "nested too deep"), (f"a={'1' * 9000}", "not valid TOML")):
        file.write_text(content)
        with pytest.raises(InputError, match=why):
            read_toml(file)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="no regular file"):
        read_toml(tmp_path / "pipe.toml")


def test_a_value_that_is_deep_or_endless():
    with pytest.raises(InputError, match="nested too deep"):
        parse_settings([f"network.mean={DEEP}"])
    assert parse_settings([f"network.mean={'1' * 9000}"]) == {"network.mean": "1" * 9000}

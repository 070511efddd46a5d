import json

import pytest

from dcdc.engine.model_files import read_config, write_config
from dcdc.errors import InputError


def test_a_config_carries_its_format_and_one_without_is_of_the_first(tmp_path):
    path = tmp_path / "config.json"
    write_config(path, {"n_clusters": 3})
    assert json.loads(path.read_text()) == {"format": 1, "n_clusters": 3}
    assert read_config(path) == {"n_clusters": 3}
    path.write_text('{"n_clusters": 4}')
    assert read_config(path) == {"n_clusters": 4}


@pytest.mark.parametrize("number", [2, "1", None, 0])
def test_another_format_is_refused_with_both_numbers(tmp_path, number):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"format": number}))
    with pytest.raises(InputError, match=r"config.json has format .*, this dcdc reads format 1"):
        read_config(path)

import json

import pytest

from dcdc.engine.model_files import read_config, write_config
from dcdc.errors import InputError


def test_a_config_carries_its_format(tmp_path):
    path = tmp_path / "config.json"
    write_config(path, {"n_clusters": 3})
    assert json.loads(path.read_text()) == {"format": 2, "n_clusters": 3}
    assert read_config(path) == {"n_clusters": 3}


@pytest.mark.parametrize("said", [{}, {"format": 1}])
def test_a_config_of_the_first_format_or_of_none_is_read_by_todays_names(tmp_path, said):
    path = tmp_path / "config.json"
    first = {"n_clusters": 4, "network": {"trunk": "small"}, "train": {"epochs": 2, "seed": 1}}
    path.write_text(json.dumps(said | first))
    assert read_config(path) == {
        "n_clusters": 4,
        "network": {"backbone": "small"},
        "train": {"seed": 1},
        "phases": [{"kind": "heads", "epochs": 2}],
    }


@pytest.mark.parametrize("number", [3, "1", None, 0])
def test_another_format_is_refused_with_both_numbers(tmp_path, number):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"format": number}))
    with pytest.raises(InputError, match=r"config.json has format .*, this dcdc reads format 2"):
        read_config(path)

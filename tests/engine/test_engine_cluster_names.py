import json

import pytest

from dcdc.engine.cluster_names import read_names, write_names
from dcdc.errors import InputError


def test_names_come_back_and_are_legible_in_the_file(tmp_path):
    path = tmp_path / "names.json"
    write_names(path, {10: "Hühner", 2: "dogs"})
    assert read_names(path, 11) == {2: "dogs", 10: "Hühner"}
    assert "Hühner" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == 1


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", '{"format": 1}', '{"format": 2, "clusters": {}}'),
        *('{"format": 1, "clusters": {"a": "b"}}', '{"format": 1, "clusters": {"0": 1}}'),
        '{"format": 1, "clusters": {"3": "beyond"}}',
    ],
)
def test_names_that_are_no_names_are_refused_with_the_file(tmp_path, content):
    (tmp_path / "names.json").write_text(content)
    with pytest.raises(InputError, match=r"names\.json"):
        read_names(tmp_path / "names.json", 3)

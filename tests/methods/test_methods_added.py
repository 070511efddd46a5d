"""The method of docs/add-a-method.md, added as the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from dcdc import methods
from dcdc.compare.settings import read_settings
from dcdc.data import load_digits
from dcdc.methods import METHODS, Entry, find_method
from dcdc.metrics import cluster_accuracy

PAGE = (Path(__file__).parents[2] / "docs/add-a-method.md").read_text()


@pytest.fixture
def added(tmp_path, monkeypatch) -> str:
    (file,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    (line,) = re.findall(r"^    (\"\w+\": Entry\(.*\)),$", PAGE, flags=re.MULTILINE)
    ((name, entry),) = eval(f"{{{line}}}", {"Entry": Entry}).items()
    (tmp_path / f"{entry.module}.py").write_text(file)
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    monkeypatch.setitem(METHODS, name, entry)
    return name


def test_a_file_and_a_line_make_a_method(added):
    digits = load_digits()
    found = find_method(added).load()(digits, 10, 0)
    assert found.assignments.dtype == np.int64
    assert cluster_accuracy(digits.targets, found.assignments) > 0.5
    again = find_method(added).load()(digits, 10, 0)
    assert np.array_equal(found.probabilities, again.probabilities)
    settings = read_settings([f"{added}.n_components=30"], [added])
    assert settings == {added: {"n_components": 30}}

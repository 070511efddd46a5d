"""The method of docs/add-a-method.md, added from outside the package as the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.experiments.method_runs import read_settings
from dcdc.methods import METHODS, find_method, register_method
from dcdc.metrics import cluster_accuracy

PAGE = (Path(__file__).parents[2] / "docs/add-a-method.md").read_text()


@pytest.fixture
def outside(tmp_path, monkeypatch) -> Path:
    """The folder in which the page's file lies; what is registered is forgotten afterwards."""
    (file,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "mixture.py").write_text(file)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))
    return tmp_path


@pytest.mark.usefixtures("outside")
def test_a_function_and_a_line_make_a_method():
    (line,) = re.findall(r"^    (register_method\(.*\))$", PAGE, flags=re.MULTILINE)
    eval(line, {"register_method": register_method})
    assert find_method("mixture").title == "Mixture"
    digits = load_digits()
    found = find_method("mixture").cluster(digits, 10, 0)
    assert found.assignments.dtype == np.int64
    assert cluster_accuracy(digits.targets, found.assignments) > 0.5
    again = find_method("mixture").cluster(digits, 10, 0)
    assert np.array_equal(found.probabilities, again.probabilities)
    settings = read_settings(["mixture.n_components=30"], ["mixture"])
    assert settings == {"mixture": {"n_components": 30}}


def test_an_installed_package_names_its_methods(outside):
    (line,) = re.findall(r"^mixture = \"(.*)\"$", PAGE, flags=re.MULTILINE)
    package = outside / "outside-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: outside\nVersion: 1\n")
    points = f"[dcdc.methods]\nmixture = {line}\ngone = mixture:clusters\n"
    (package / "entry_points.txt").write_text(points)
    assert METHODS.names()[-2:] == ["mixture", "gone"]
    assert find_method("mixture").function == line
    assert find_method("mixture").settings() == {"n_components": 20}
    with pytest.raises(InputError, match="method 'gone' is not at mixture:clusters"):
        find_method("gone").load()


@pytest.mark.usefixtures("outside")
def test_a_name_or_a_function_that_will_not_do_is_refused():
    with pytest.raises(InputError, match="there is a method 'k-means' already"):
        register_method("k-means", "mixture:cluster")
    with pytest.raises(InputError, match="must be of letters, digits"):
        register_method("a.b", "mixture:cluster")
    with pytest.raises(InputError, match="give a function that can be imported"):
        register_method("local", lambda *_: None)
    register_method("gone", "mixture:clusters")
    with pytest.raises(InputError, match="method 'gone' is not at mixture:clusters"):
        find_method("gone").load()

"""The notebook runs from top to bottom, in a kernel of its own, and comes to what it is there for.

`make check` runs it; its kernel comes with the extra `docs`.
"""

import json
import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples/digits.ipynb"


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_is_kept_without_outputs():
    for cell in code_cells(json.loads(NOTEBOOK.read_text())):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def texts(cell: dict) -> str:
    """What a cell printed, and its last value in words."""
    told = [each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell.outputs]
    return "".join(told)


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="pip install 'dcdc[docs]'")
    nbclient = pytest.importorskip("nbclient", reason="pip install 'dcdc[docs]'")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()

    told = "\n".join(map(texts, code_cells(notebook)))
    scores = dict(re.findall(r"^(\S.*?) +ACC (0\.\d{3})", told, flags=re.MULTILINE))
    assert float(scores["DCDC"]) > 0.9 > float(scores["K-Means on the pixels"])
    gallery = [each for each in shown(notebook) if each.count("<img") >= 80]
    assert gallery, "eight pictures of each of ten clusters"


def shown(notebook: dict) -> list[str]:
    """What a person sees of the cells' values."""
    outputs = [each for cell in code_cells(notebook) for each in cell.outputs]
    return [each.get("data", {}).get("text/html", "") for each in outputs]

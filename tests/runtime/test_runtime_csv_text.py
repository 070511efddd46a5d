import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcdc.runtime.csv_text import csv_lines, unguarded


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(begin):
    for text in (f"{begin}cmd|' /C calc'!A0", begin, f"'{begin}1+1", f'{begin}HYPERLINK("x")'):
        (row,) = csv.reader(io.StringIO(csv_lines([[text, 1]]), newline=""))
        assert row[0].startswith("'")
        assert unguarded(row[0]) == text


@pytest.mark.parametrize("value", [-1, -0.5, "-1", "+2", "-1e-5", "-.5", "0", None, "'quoted'"])
def test_numbers_and_usual_texts_stay_as_they_are(value):
    assert csv_lines([[value]]) == f"{'' if value is None else value}\n"


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=2, max_size=3))
def test_every_row_reads_back(texts):
    (row,) = csv.reader(io.StringIO(csv_lines([texts]), newline=""))
    assert list(map(unguarded, row)) == texts

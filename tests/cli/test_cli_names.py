"""Names of clusters: from the page's file into the run folder, and into predictions."""

import csv
import json

import pyarrow.parquet as pq
import pytest

RTL = "\u202eevil\u202c"


@pytest.fixture
def name_file(tmp_path):
    def write(content: object) -> str:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "given.json").write_text(text, encoding="utf-8")
        return "given.json"

    return write


def test_names_are_kept_shown_and_predicted(dcdc, finished, tiny_file, name_file, tmp_path):
    names = {"0": "  stripes\n across ", "1": f"</script>\N{CAT FACE}{RTL}", "2": ""}
    given = name_file({"format": 1, "clusters": names})
    code, _, err = dcdc("report", finished, "--names", given)
    assert code == 0, err
    kept = {"0": "stripes across", "1": f"</script>\N{CAT FACE}{RTL}"}
    assert json.loads((finished / "names.json").read_text(encoding="utf-8"))["clusters"] == kept
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "stripes across" in page
    assert "</script>\N{CAT FACE}" not in page

    code, out, _ = dcdc("predict", finished, tiny_file)
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 48
    assert all(row["cluster_name"] == kept.get(row["cluster"], "") for row in rows)
    for name in ("out.parquet", "out.csv"):
        assert dcdc("predict", finished, tiny_file, "--out", name)[0] == 0
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["cluster_name"] == [kept.get(str(cluster)) for cluster in table["cluster"]]
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert [row["cluster_name"] for row in csv.DictReader(file)] == [
            row["cluster_name"] for row in rows
        ]


@pytest.mark.slow
def test_names_stay_and_the_runs_own_may_be_given_again(dcdc, finished, name_file):
    given = name_file({"format": 1, "clusters": {"0": "stripes"}})
    for names in (("--names", given), (), ("--names", finished / "names.json")):
        assert dcdc("report", finished, *names)[0] == 0
        assert "stripes" in (finished / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("given", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_without_names_there_is_no_column(dcdc, finished, tiny_file, name_file, tmp_path, given):
    if given:
        names = name_file({"format": 1, "clusters": {}})
        assert dcdc("report", finished, "--names", names)[0] == 0
    header = dcdc("predict", finished, tiny_file)[1].splitlines()[0]
    assert header.startswith("name,cluster,confidence,target,runner_up,")
    assert "cluster_name" not in header
    assert dcdc("predict", finished, tiny_file, "--out", "out.parquet")[0] == 0
    assert "cluster_name" not in pq.read_schema(tmp_path / "out.parquet").names


BAD = {
    "{": "is no JSON",
    "[" * 100_000: "is nested more than 32 deep",
    "[]": "is no JSON object",
    '{"clusters": {}}': "format is missing: it should read {",
    '{"format": 2, "clusters": {}}': "format is 2, it should be 1",
    '{"format": 1, "clusters": []}': "clusters is a list of 0, it should be an object",
    '{"format": 1, "clusters": {"3": "a"}}': "names cluster '3': the run has clusters 0 to 2",
    '{"format": 1, "clusters": {"-1": "a"}}': "names cluster '-1'",
    '{"format": 1, "clusters": {"\u0661": "a"}}': "names cluster",
    '{"format": 1, "clusters": {"0": 7}}': "clusters.0 is 7, it should be a text",
    '{"format": 1, "clusters": {"0": "' + "a" * 101 + '"}}': "101 characters",
    '{"format": 1, "clusters": {"0": "\\u0007"}}': "control characters",
    '{"format": 1, "clusters": {"0": "\\ud800"}}': "control characters",
}


def test_a_bad_names_file_is_one_line_and_changes_nothing(dcdc, finished, tiny_file, name_file):
    before = (finished / "report.html").read_bytes()
    for text, message in BAD.items():
        code, out, err = dcdc("report", finished, "--names", name_file(text))
        assert (code, out, err.count("\n")) == (2, "", 1), (text, err)
        assert message in err, (text, err)
    assert dcdc("report", finished, "--names", "none.json")[0] == 2
    assert not (finished / "names.json").exists()
    assert (finished / "report.html").read_bytes() == before
    (finished / "names.json").write_text("{")
    for command in (("report", finished), ("predict", finished, tiny_file)):
        code, out, err = dcdc(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "names.json" in err

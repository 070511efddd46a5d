import csv
import io
import re

import numpy as np
import pytest

from dcdc.engine.observer import SilentObserver
from dcdc.experiments.compare_tables import (
    comma_separated,
    figures,
    latex,
    markdown,
    remark,
    write_page,
    write_tables,
)
from dcdc.experiments.method_child import carry_out
from dcdc.experiments.rows import summarise
from dcdc.metrics import partition_health
from dcdc.report.disagreement import shown_images


@pytest.fixture
def rows(make_run, leave_run):
    """Two methods of CIFAR-10 with two seeds each, and one that failed."""
    runs = []
    for method, accs in (("k-means", (0.2, 0.3)), ("sc", (0.4, 0.4)), ("ac", ())):
        runs += [make_run(method, seed=seed, dataset="cifar10") for seed in (0, 1)]
        for run, acc in zip(runs[-2:], accs, strict=False):
            leave_run(run, acc, training_seconds=10 + run.seed, peak_memory_mb=300 + run.seed)
    return summarise(runs, {runs[-1].folder: "no | memory_left & 100%"})


def test_means_spreads_published_time_and_memory(rows):
    assert figures(rows).heads == [
        *("method", "seeds", "NMI", "ACC", "ARI"),
        *("published: NMI", "ACC", "ARI", "trained for", "epochs", "time", "memory", "remark"),
    ]
    assert figures(rows).rows[0] == [
        *("K-Means", "0, 1", ".125 ± .035", ".250 ± .071", ".062 ± .018"),
        *(".087", ".229", ".049", "-", "-", "10.5 s", "301 MB", ""),
    ]
    assert figures(rows).rows[2] == [
        *("AC", "-", "-", "-", "-", ".105", ".228", ".065", "-", "-", "-", "-"),
        "failed (seed 1)",
    ]


def test_it_is_told_how_long_ours_and_the_published_were_trained(make_run, leave_run):
    run = make_run("pica", dataset="cifar10")
    leave_run(run, epochs=30)
    sheet = figures(summarise([run], {}))
    cells = dict(zip(sheet.heads[5:], sheet.rows[0][5:], strict=True))
    assert cells["trained for"] == "200 epochs"
    assert cells["epochs"] == "30"


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([5, 5, 5, 5], ""),
        ([8, 8, 4, 0], "3 of 4 clusters in use"),
        ([10, 10, 0, 0], "collapsed: 2 of 4 clusters in use"),
        ([19, 1, 0, 0], "collapsed: 95% of the images in one cluster"),
    ],
)
def test_a_partition_that_collapsed_is_a_row_that_says_so(make_run, leave_run, sizes, told):
    run = make_run("iic")
    health = partition_health(np.eye(4)[np.repeat(np.arange(4), sizes)]).to_dict()
    leave_run(run, health=health)
    (row,) = summarise([run], {})
    assert remark(row) == told
    assert ("remark" in figures([row]).heads) == bool(told)


def test_the_best_of_ours_is_marked_and_never_the_papers(rows):
    assert figures(rows).best == {(1, 2), (1, 3), (1, 4)}
    first, second, third = figures(rows).marked()
    assert [at for at, (_, best) in enumerate(second) if best] == [2, 3, 4]
    assert not any(best for _, best in (*first, *third))


def test_of_figures_that_differ_by_rounding_all_are_the_best(make_run, leave_run):
    runs = [make_run(method) for method in ("k-means", "sc", "ac")]
    for run, acc in zip(runs, (0.9, float(np.nextafter(0.9, 0)), 0.899), strict=True):
        leave_run(run, acc)
    rows = summarise(runs, {})
    assert {at for at, _ in figures(rows).best} == {0, 1}


def test_without_published_figures_their_columns_are_left_out(make_run, leave_run):
    run = make_run("k-means")
    leave_run(run, peak_gpu_memory_mb=2048)
    rows = summarise([run], {})
    assert figures(rows).heads[5:] == ["epochs", "time", "memory", "GPU memory"]
    assert figures(rows).rows[0][5:] == ["-", "12.5 s", "300 MB", "2,048 MB"]


def test_without_targets_there_are_times_and_dashes(make_run, leave_run):
    run = make_run("k-means")
    leave_run(run, scores=None)
    rows = summarise([run], {})
    assert figures(rows).rows[0] == ["K-Means", "0", "-", "-", "-", "-", "12.5 s", "300 MB"]
    assert not figures(rows).best


def test_markdown_has_a_row_for_each_method_and_for_each_run(rows):
    text = markdown(rows, "A title", "dcdc compare x")
    assert "    dcdc compare x" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == (2 + 3) + (2 + 6)
    assert len({len(re.split(r"(?<!\\)\|", line)) for line in lines[:5]}) == 1
    assert len({len(re.split(r"(?<!\\)\|", line)) for line in lines[5:]}) == 1
    assert "missing; failed: no \\| memory_left & 100%" in text


def test_latex_escapes_and_marks(rows):
    text = latex(rows, "50% & more")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(body) == 1 + 3
    assert {line.count("&") for line in body} == {12}
    assert r"\textbf{.400 $\pm$ .000}" in text
    assert text.splitlines()[1] == r"\begin{tabular}{llrrrrrrrrrrr}"


def test_csv_rounds_nothing(rows):
    table = list(csv.DictReader(io.StringIO(comma_separated(rows))))
    assert [line["method"] for line in table] == ["k-means", "sc", "ac"]
    assert float(table[0]["acc"]) == (0.2 + 0.3) / 2
    assert table[0]["acc_published"] == "0.229"
    assert table[2]["acc"] == table[2]["seconds"] == ""


def test_files_are_written_side_by_side(rows, tmp_path):
    paths = write_tables(rows, "A title", "dcdc compare x", tmp_path / "new")
    assert [path.name for path in paths] == ["compare.md", "compare.tex", "compare.csv"]
    assert all(path.read_text() for path in paths)


def test_the_page_has_what_did_not_finish_and_the_history_that_a_method_told(
    make_run, tiny_set, tmp_path
):
    done, failed = make_run("ae", "ae.n_steps=4", "ae.width=2"), make_run("sc")
    carry_out(done.job(), SilentObserver())
    other = make_run("k-means", "k-means.n_init=1")
    carry_out(other.job(), SilentObserver())
    rows = summarise([done, other, failed], {failed.folder: "no <b>memory</b>"})
    path = write_page(rows, "A title", tmp_path / "page.html", shown_images(tiny_set))
    page = path.read_text(encoding="utf-8")
    assert "sc-seed-0 failed: no &lt;b&gt;memory&lt;/b&gt;" in page
    assert "The loss of each method, in its own units" in page
    assert "<code>n_steps=4</code>" in page
    assert "Where two methods disagree" in page

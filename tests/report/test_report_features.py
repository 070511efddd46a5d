"""The page of runs on feature vectors and over a pretrained backbone."""

import re
import shlex
import shutil
import sys

import numpy as np
import pytest
from test_report_page import Page

from dcdc.cli import main
from dcdc.data import from_vectors, load_data
from dcdc.report import write_comparison, write_report
from dcdc.report.compared_runs import read_runs, table_rows
from dcdc.report.facts import read_facts
from dcdc.report.reproduce import command
from dcdc.run_folder import RunFolder


def page_of(run, data) -> Page:
    return Page(write_report(RunFolder.open(run), data).read_text())


def test_vectors_are_shown_by_their_files_and_a_missing_one_leaves_the_others(
    vector_run, vectors_file, tmp_path
):
    folder = shutil.copytree(vectors_file.parent, tmp_path / "own")
    (folder / "photos/kind-0/03.png").unlink()
    page = page_of(vector_run, load_data(folder / "vectors.npz"))
    assert len(page.thumbnails) == 3 * 24  # of three clusters by chance and surest; the uncertain
    assert "1 image cannot be read and is crossed out, first photos/kind-0/03.png" in page.text
    assert page.data["map"]["sheet"]["side"] == 32
    assert "24 of 12 numbers" in page.text
    assert "On given feature vectors: the network that made them may have learnt" in page.text
    assert "those of their nearest neighbours" in page.text
    assert "perturbed" not in re.sub(r"copies ?= ?perturbed", "", page.text)
    assert "None" not in page.text
    assert (vector_run / "figures" / "clusters.png").exists()


def test_without_pictures_the_page_says_why_and_has_all_else(vector_run, vectors_file):
    held = load_data(vectors_file)
    page = page_of(vector_run, from_vectors(held.vectors, names=held.names))
    assert "nothing tells which images they are of. The clusters are listed without" in page.text
    assert page.thumbnails == []
    assert len(page.data["map"]["cluster"]) == 24
    for stem in ("map", "affinity", "training", "sizes", "confusion"):
        assert (vector_run / "figures" / f"{stem}.png").exists(), stem


def test_pretrained_weights_are_named_beside_the_scores(frozen_run, photo_folder):
    page = page_of(frozen_run, load_data(photo_folder, size=32))
    assert "Features of EfficientNet-Lite0, frozen: weights trained on ImageNet-1k" in page.text
    assert "with labels (Apache-2.0). The scores cannot be compared" in page.text
    assert "EfficientNet-Lite0, frozen" in page.text
    assert "nearest neighbours" in page.text
    assert len(page.thumbnails) == 3 * 24


def test_figures_of_other_origin_are_not_ranked_against_each_other(
    vector_run, frozen_run, vector_run_once, tmp_path
):
    again = shutil.copytree(vector_run_once, tmp_path / "again")
    runs = read_runs([RunFolder.open(run) for run in (vector_run, frozen_run, again)])
    scores = [run.facts.metrics["scores"] for run in runs]
    for row, score in zip(scores, ((0.9, 0.9, 0.9), (0.5, 0.5, 0.5), (0.4, 0.4, 0.4)), strict=True):
        row.update(zip(("acc", "nmi", "ari"), score, strict=True))
    rows = table_rows(runs)
    best = [[is_best for _, is_best in row[1:4]] for row in rows]
    assert best == [[True] * 3, [True] * 3, [False] * 3]
    assert [row[4][0] for row in rows] == [
        *("given vectors", "EfficientNet-Lite0, frozen", "given vectors")
    ]
    folders = [RunFolder.open(run) for run in (vector_run, frozen_run)]
    page = Page(write_comparison(folders, tmp_path / "c.html").read_text())
    assert "have features of other origin" in page.text


@pytest.mark.parametrize("kind", ["vector_run", "frozen_run"])
def test_the_command_on_the_page_runs_it_again(kind, request, tmp_path, monkeypatch):
    """Every setting is spelled out: also what vectors and backbones decided."""
    run = request.getfixturevalue(kind)
    monkeypatch.chdir(tmp_path)
    typed = command(read_facts(RunFolder.open(run))).replace("\\\n", " ")
    monkeypatch.setattr(sys, "argv", [*shlex.split(typed), "--no-report", "--quiet"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    again = run.with_name(f"{run.name}-again")
    assert (again / "config.json").read_text() == (run / "config.json").read_text()
    a, b = (np.load(folder / "sample.npz")["assign"] for folder in (run, again))
    assert np.array_equal(a, b)

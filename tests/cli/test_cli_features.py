"""Feature vectors and pretrained backbones on the command line: marks, answers, refusals."""

import csv
import json

import numpy as np
import pytest

from dcdc.data import VectorSet
from dcdc.methods import Method
from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from feature_runs import FROZEN, QUICK, some_vectors, write_photos

MARK = (
    "features of EfficientNet-Lite0, {how}: weights trained on ImageNet-1k with labels (Apache-2.0)"
)
GIVEN = "on given feature vectors: the network that made them may have learnt from labels"


def settings(**values) -> list[str]:
    return [text for key, value in values.items() for text in ("--set", f"{key}={value}")]


@pytest.fixture
def refused(dcdc):
    def call(*arguments: object) -> str:
        code, out, err = dcdc(*arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("dcdc: ")
        assert err.count("\n") == 1
        return err

    return call


def test_from_vectors_to_their_clusters_in_three_commands(dcdc, vectors_file, tmp_path):
    code, out, err = dcdc("fit", vectors_file, "--run", "run", "--no-report", *settings(**QUICK))
    assert code == 0, err
    assert "24 feature vectors of 12, 3 classes to score against" in err
    assert GIVEN in out.splitlines()
    code, out, err = dcdc("evaluate", "run")
    assert code == 0, err
    assert GIVEN in out.splitlines()
    code, out, err = dcdc("evaluate", "run", vectors_file)
    assert code == 0, err
    assert GIVEN in out.splitlines()
    code, out, err = dcdc("predict", "run", vectors_file, "--out", "o.csv", "--copy-to", "sorted")
    assert code == 0, err
    assert "24 files copied: sorted" in out
    with (tmp_path / "o.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 24


def test_other_widths_and_kinds_are_one_line(
    refused, vector_run_once, frozen_run_once, vectors_file, tmp_path
):
    np.save(tmp_path / "narrow.npy", some_vectors(9, 5)[0])
    photos = write_photos(tmp_path / "photos", 6)
    for verb in ("predict", "evaluate"):
        told = refused(verb, vector_run_once, photos)
        assert "was trained on feature vectors" in told
        assert "holds images" in told
        told = refused(verb, frozen_run_once, vectors_file)
        assert "was trained on images" in told
        assert "holds feature vectors" in told
    told = refused("predict", vector_run_once, "narrow.npy")
    assert "vectors of 12 features, those of narrow.npy have 5" in told
    told = refused("predict", vector_run_once, vectors_file, "--column", "nope")
    assert "nope" in told
    told = refused("predict", frozen_run_once, photos, "--column", "x")
    assert "--column x has no meaning" in told
    told = refused("predict", vector_run_once, "narrow.npy", "--out", "o.csv", "--copy-to", "s")
    assert "features" in told


def test_bad_rows_are_refused_and_skipped_by_their_flag(dcdc, refused, vector_run_once, tmp_path):
    rows, _ = some_vectors(9)
    rows[5, 1] = np.nan
    np.save(tmp_path / "v.npy", rows)
    assert "use --on-bad skip" in refused("predict", vector_run_once, "v.npy")
    code, out, err = dcdc("predict", vector_run_once, "v.npy", "--on-bad", "skip")
    assert code == 0
    assert len(out.splitlines()) == 9
    assert "skipped image-0005" in err


def test_an_export_of_vectors_is_checked_on_vectors(dcdc, vector_run):
    code, out, err = dcdc("export", vector_run, "--format", "torch")
    assert code == 0, err
    assert "tolerance 1e-04: 17 random vectors" in out


def test_a_frozen_run_marks_its_scores_and_reports_them(dcdc, frozen_run, photo_folder):
    for source in ((), (photo_folder,)):
        code, out, err = dcdc("evaluate", frozen_run, *source)
        assert code == 0, err
        assert MARK.format(how="frozen") in out.splitlines()
    code, out, err = dcdc("report", frozen_run)
    assert code == 0, err
    page = (frozen_run / "report.html").read_text()
    assert MARK.format(how="frozen")[1:] in page


@pytest.mark.skipif(not is_available(), reason="EfficientNet-Lite0 is not installed")
def test_a_fine_tuned_backbone_is_told_from_a_frozen_one(dcdc, photo_folder, tmp_path):
    values = {"network.input_size": 32, "train.threads": 1}
    code, out, err = dcdc(
        *("fit", photo_folder, "--clusters", "classes", "--fine-tune"),
        *("--backbone", FROZEN["network.backbone"]),
        *("--epochs", 1, "--device", "cpu", "--run", "run", "--no-report", *settings(**values)),
    )
    assert code == 0, err
    assert MARK.format(how="fine-tuned") in out.splitlines()
    assert "fine-tuned here: weights trained on" in (tmp_path / "run" / "README.md").read_text()
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["backbone"]["frozen"] is False
    code, out, err = dcdc("predict", "run", photo_folder, "--out", "o.csv")
    assert code == 0, err
    code, out, err = dcdc("evaluate", "run")
    assert MARK.format(how="fine-tuned") in out.splitlines()


@pytest.mark.skipif(not is_available(), reason="EfficientNet-Lite0 is not installed")
def test_a_baseline_beside_a_frozen_backbone_groups_its_features(
    dcdc, photo_folder, tmp_path, monkeypatch
):
    """Figures of pixels cannot be compared with those of pretrained features."""
    seen = []
    own = Method.cluster

    def noted(method, data, *how):
        seen.append(data)
        return own(method, data, *how)

    monkeypatch.setattr(Method, "cluster", noted)
    flags = (
        *("fit", photo_folder, "--clusters", "classes", "--epochs", 1),
        *("--backbone", FROZEN["network.backbone"]),
        *("--device", "cpu", "--run", "run", "--no-report"),
        *settings(**{"network.input_size": 32, "train.threads": 1}),
    )
    code, _, err = dcdc(*flags, "--baseline", "k-means")
    assert code == 0, err
    (data,) = seen
    assert isinstance(data, VectorSet)
    assert data.n_features == 1280
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["baselines"].keys() == {"K-Means"}
    code, _, err = dcdc(*flags, "--overwrite", "--baseline", "dec")
    assert code == 2
    assert "--baseline dec groups images, and this run groups features" in err


def test_a_run_from_scratch_has_no_mark(dcdc, finished):
    code, out, err = dcdc("evaluate", finished)
    assert code == 0, err
    assert "weights trained on" not in out


def test_fine_tuning_what_is_not_pretrained_is_one_line(refused, vectors_file, photo_folder):
    for words in ((vectors_file,), (photo_folder, "--clusters", 3, "--backbone", "scratch")):
        told = refused("fit", *words, "--fine-tune", "--run", "run", "--device", "cpu", "--quiet")
        assert "--fine-tune has no meaning with the backbone" in told

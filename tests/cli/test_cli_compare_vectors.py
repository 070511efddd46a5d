"""`dcdc compare` on feature vectors: given ones, and those of a pretrained backbone."""

import csv
import json

import numpy as np
import pytest

from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from feature_runs import some_vectors

QUICK = [
    *("--set", "temi.n_steps=20", "--set", "temi.n_heads=4", "--set", "temi.n_neighbours=5"),
    *("--set", "turtle.n_steps=20", "--set", "dcdc.heads.epochs=2", "--device", "cpu"),
]
GIVEN = "on given feature vectors: the network that made them may have learnt from labels"
LITE0 = "features of EfficientNet-Lite0, trained on ImageNet-1k with labels"
NEEDS_WEIGHTS = pytest.mark.skipif(
    not is_available(), reason="needs the weights of EfficientNet-Lite0"
)


@pytest.fixture
def labelled(tmp_path_factory):
    vectors, targets = some_vectors()
    file = tmp_path_factory.mktemp("vectors") / "embeddings.npz"
    np.savez(file, vectors=vectors, labels=targets)
    return file


@pytest.mark.slow
def test_methods_stand_side_by_side_on_the_same_vectors(dcdc, labelled, tmp_path):
    words = ("--methods", "k-means,gmm,sc,temi,turtle,dcdc", *QUICK, "--dataset", "cifar10")
    code, out, err = dcdc("compare", labelled, *words, "--out", "out")
    assert code == 0, err
    assert GIVEN in " ".join(out.split())
    assert "published" not in out  # those figures are from scratch
    text = (tmp_path / "out/compare.md").read_text()
    assert text.splitlines()[0].endswith(f"60 feature vectors of 12, 3 clusters; {GIVEN}")
    assert GIVEN in (tmp_path / "out/compare.html").read_text()
    assert GIVEN in (tmp_path / "out/compare.tex").read_text()
    with (tmp_path / "out/compare.csv").open() as file:
        table = {row["method"]: row for row in csv.DictReader(file)}
    assert list(table) == ["k-means", "sc", "gmm", "temi", "turtle", "dcdc"]  # as in all tables
    assert all(row["features"] == GIVEN for row in table.values())
    assert all(float(table[name]["acc"]) == 1 for name in ("k-means", "gmm", "sc", "dcdc"))
    metrics = json.loads(
        (tmp_path / "out/temi-n-heads-4-n-neighbours-5-n-steps-20-seed-0/metrics.json").read_text()
    )
    assert metrics["n_features"] == 12
    assert metrics["backbone"] == {"name": "vectors", "pretrained": None}


def test_all_are_those_that_take_such_data(dcdc, labelled, tiny_file):
    over = ("--minutes", "1e-9", "--out", "out")
    code, out, err = dcdc("compare", labelled, *over)
    assert code == 3
    methods = [line.split()[0] for line in out.splitlines() if line.split()[1:2] == ["-"]]
    assert methods == ["K-Means", "SC", "AC", "GMM", "TEMI", "TURTLE", "DCDC"]  # values below 0
    assert "7 of 7 runs are left" in err
    code, out, _ = dcdc("compare", tiny_file, *over)
    assert code == 3
    methods = [line.split()[0] for line in out.splitlines() if line.split()[1:2] == ["-"]]
    assert methods[:4] == ["K-Means", "SC", "AC", "NMF"]
    assert not {"GMM", "TEMI", "TURTLE"} & set(methods)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("VECTORS", "--methods", "k-means,ae"),
            "ae takes images, not feature vectors: choose --methods among k-means, sc, ac, gmm, ",
        ),
        (("VECTORS", "--methods", "nmf"), "nmf takes no value below 0, and "),
        (
            ("FILE", "--methods", "temi"),
            "temi takes feature vectors, not images: name the pretrained network that makes them "
            "by --backbone, or choose --methods among ",
        ),
        (("FILE", "--backbone", "resnet18"), "--backbone resnet18 names no pretrained network"),
        (("FILE", "--backbone", "efficentnet-lite0"), "did you mean 'efficientnet-lite0'?"),
        (("VECTORS", "--size", "8"), "--size 8 has no meaning for "),
        (("VECTORS", "--column", "vector"), "vector"),
        (("VECTORS", "--set", "ae.n_steps=3"), "is for ae, which is not compared"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    dcdc, labelled, tiny_file, tmp_path, arguments, message
):
    places = {"FILE": tiny_file, "VECTORS": labelled}
    code, out, err = dcdc("compare", *(places.get(word, word) for word in arguments))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@NEEDS_WEIGHTS
def test_vectors_need_no_backbone(dcdc, labelled):
    code, _, err = dcdc("compare", labelled, "--backbone", "efficientnet-lite0")
    assert code == 2
    assert "--backbone efficientnet-lite0 has no meaning for " in err


@NEEDS_WEIGHTS
@pytest.mark.slow
def test_photos_are_compared_on_the_features_of_a_backbone(dcdc, photo_folder, tmp_path):
    words = ("compare", photo_folder, "--backbone", "efficientnet-lite0", "--size", "48")
    words += ("--clusters", "classes")
    code, out, err = dcdc(*words, "--methods", "k-means,turtle,dcdc", *QUICK[6:])
    assert code == 0, err
    assert LITE0 in " ".join(out.split())
    folder = tmp_path / "runs/compare/photos-efficientnet-lite0"
    assert (folder / "compare.md").read_text().splitlines()[0].endswith(f"; {LITE0}")
    for name in ("k-means-size-48-seed-0", "turtle-n-steps-20-size-48-seed-0"):
        metrics = json.loads((folder / name / "metrics.json").read_text())
        assert metrics["n_features"] == 1280
        assert metrics["backbone"]["pretrained"]["trained_on"] == "ImageNet-1k"
        assert metrics["scores"]["acc"] > 0.9
        assert json.loads((folder / name / "config.json").read_text())["backbone"]
    # A comparison on pixels neither takes these runs for its own nor writes over them.
    code, _, err = dcdc(
        *("compare", photo_folder, "--size", "48", "--methods", "k-means", "--device", "cpu"),
        *("--out", folder, "--clusters", "classes"),
    )
    assert code == 1
    assert "holds a run of something else" in err

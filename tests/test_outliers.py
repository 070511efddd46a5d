"""Images that belong to no cluster, from fit to predict, tables, report, sorting and Python."""

import json
import pickle

import numpy as np
import pytest
from PIL import Image

import dcdc
from dcdc import DCDC
from dcdc.data import from_vectors
from dcdc.engine.edits import OUTSIDE
from dcdc.metrics.health import OUTLIER
from dcdc.prediction.answers import images_for
from dcdc.prediction.session import predict_to_file
from dcdc.prediction.sorting import Sorting, cluster_folders
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.report import write_report
from dcdc.report.facts import describe_clusters, read_facts
from dcdc.run import run
from dcdc.run_folder import RunFolder
from dcdc.viewer.opening import open_run
from dcdc.viewer.told import overview

N_INSIDE, N_STRANGERS = 240, 20
STRANGE = np.arange(N_INSIDE, N_INSIDE + N_STRANGERS)
ASKED = {"n_clusters": 3, "outliers": True, "heads.epochs": 4, "network.sub_heads": 2}
HERE = {"train.device": "cpu", "train.threads": 1}


def clouds(n_rows: int, seed: int = 0, strange: bool = False) -> np.ndarray:
    """Three clouds, or one far from all of them."""
    random = np.random.default_rng(seed)
    middles = 8 * np.eye(4, 12)
    kinds = np.full(n_rows, 3) if strange else np.arange(n_rows) % 3
    return (middles[kinds] + random.normal(size=(n_rows, 12))).astype(np.float32)


VECTORS = np.concatenate([clouds(N_INSIDE), clouds(N_STRANGERS, 1, strange=True)])
TARGETS = np.concatenate([np.arange(N_INSIDE) % 3, np.full(N_STRANGERS, 3)])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """With a file for each row, to be sorted."""
    folder = tmp_path_factory.mktemp("strange")
    files = []
    for row in range(len(VECTORS)):
        files.append(f"{row:03}.png")
        Image.new("L", (8, 8), row % 256).save(folder / files[-1])
    np.savez(folder / "rows.npz", vectors=VECTORS, targets=TARGETS, files=np.array(files))
    return folder / "rows.npz"


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory):
    prepared = prepare_run(source, Overrides(ASKED | HERE))
    folder = RunFolder.create(tmp_path_factory.mktemp("outliers") / "run")
    run(prepared.config, prepared.images, folder=folder)
    return folder


def flags(found: np.ndarray) -> tuple[float, float]:
    """Shares of strangers and of others that are in no cluster."""
    return (found[STRANGE] == OUTLIER).mean(), (found[:N_INSIDE] == OUTLIER).mean()


def test_strangers_are_in_no_cluster_of_the_tables(folder):
    table = folder.read_assignments()
    clusters = table["cluster"].to_numpy()
    found, lost = flags(clusters)
    assert found == 1.0
    assert lost <= 0.03
    metrics = folder.read_metrics()
    n_outliers = int((clusters == OUTLIER).sum())
    assert metrics["n_outliers"] == n_outliers
    assert sum(metrics["health"]["sizes"]) == len(VECTORS) - n_outliers
    assert metrics["scores"]["acc"] > 0.97  # one cluster more, matched with the class of strangers
    assert sorted(folder.read_hierarchy().order) == [0, 1, 2]


def test_without_asking_for_it_every_image_has_a_cluster(source):
    prepared = prepare_run(source, Overrides(ASKED | HERE | {"outliers": False}))
    found = run(prepared.config, prepared.images)
    assert found.assigned.assignments.min() == 0
    assert "n_outliers" not in found.metrics


def test_a_loaded_model_knows_strangers_and_its_saved_copy_too(folder, tmp_path):
    model = dcdc.load(folder.path, device="cpu")
    new, strange = clouds(300, seed=7), clouds(50, seed=8, strange=True)
    assert (model.predict(strange) == OUTLIER).mean() > 0.9
    assert (model.predict(new) == OUTLIER).mean() < 0.05
    assert model.predict_proba(strange).shape == (50, 3)
    again = dcdc.load(model.save(tmp_path / "model"), device="cpu")
    assert (again.predict(strange) == model.predict(strange)).all()
    n_kept = len(model.training_features())
    assert N_INSIDE * 0.9 < n_kept <= N_INSIDE  # no stranger vouches for another


@pytest.mark.parametrize("outliers", [None, False])
def test_predict_marks_and_sorts_them_unless_told_otherwise(folder, source, tmp_path, outliers):
    model = dcdc.load(folder.path, device="cpu")
    stream = images_for(model, source)
    out = tmp_path / "rows.jsonl"
    sorting = Sorting(tmp_path / "sorted")
    predict_to_file(model, stream, out, sorting=sorting, outliers=outliers)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    clusters = np.array([row["cluster"] for row in rows])
    assert all(row["out_of_distribution"] for row in rows[N_INSIDE:])
    left = sorted(path.name for path in (tmp_path / "sorted").glob("outliers/*"))
    if outliers is None:
        assert (clusters[STRANGE] == OUTLIER).all()
        assert [f"{row:03}.png" for row in STRANGE] == left[-N_STRANGERS:]
        assert len(left) == (clusters == OUTLIER).sum()
    else:
        assert clusters.min() == 0
        assert not left


def test_a_cluster_may_be_called_outliers():
    assert cluster_folders(2, {}) == ["cluster-00", "cluster-01", "outliers"]
    assert cluster_folders(2, {1: "Outliers"}) == ["cluster-00", "Outliers-01", "outliers-none"]


def test_the_report_and_the_viewer_show_them(folder, source):
    from dcdc.data import load_data

    page = write_report(folder, load_data(source)).read_text()
    assert "<h2>In no cluster</h2>" in page
    assert '<th scope="col" data-heads="none">none</th>' in page
    facts = read_facts(folder)
    assert set(STRANGE) <= set(facts.outliers)
    members = np.concatenate([cluster.members for cluster in describe_clusters(facts)])
    assert not set(members) & set(facts.outliers)
    viewed = open_run(folder)
    assert overview(viewed)["n_outside"] == len(facts.outliers)
    assert (viewed.clusters[STRANGE] == OUTSIDE).all()


def test_a_report_without_outliers_says_nothing_of_them(vector_run):
    assert "In no cluster" not in write_report(RunFolder(vector_run)).read_text()


def test_the_estimator_labels_them_and_its_pickle_too():
    model = DCDC(n_clusters=3, outliers=True, epochs=4, device="cpu", random_state=0)
    found, lost = flags(model.fit(VECTORS).labels_)
    assert found == 1.0
    assert lost <= 0.03
    assert model.cluster_sizes_.sum() == (model.labels_ != OUTLIER).sum()
    strange = clouds(30, seed=9, strange=True)
    assert (model.predict(strange) == OUTLIER).mean() > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(strange) == model.predict(strange)).all()
    assert f"{(model.labels_ == OUTLIER).sum()} in none" in repr(model.show_clusters())


def test_too_few_images_have_no_outliers():
    prepared = prepare_run(from_vectors(VECTORS[:18]), Overrides(ASKED | HERE))
    assert run(prepared.config, prepared.images).assigned.assignments.min() == 0

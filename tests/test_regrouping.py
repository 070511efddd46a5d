"""Another number of clusters by the features of a finished run, for images and feature vectors."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import dcdc
from dcdc.config import DataConfig, with_values
from dcdc.data import load_images
from dcdc.errors import InputError
from dcdc.metrics import cluster_accuracy
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.stored_features import stored_features
from dcdc.regrouping import regroup
from dcdc.report import write_report
from dcdc.run import load, read_config, run
from dcdc.run_folder import RunFolder
from feature_runs import trained

QUICK = {"heads.epochs": 3, "network.sub_heads": 2, "train.device": "cpu"}


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def image_run_once(tmp_path_factory, tiny_file, tiny_config):
    data = DataConfig(source=str(tiny_file))
    folder = tmp_path_factory.mktemp("regrouped") / "run"
    # As presets have it; new heads have no over-clustering head beside them.
    tiny_config = with_values(tiny_config, {"heads.over_clustering_first": 1})
    run(replace(tiny_config, data=data), load_images(tiny_file), folder=RunFolder.create(folder))
    return folder


@pytest.fixture
def image_run(image_run_once, tmp_path):
    return shutil.copytree(image_run_once, tmp_path / "run")


def regrouped(earlier, n_clusters=2, **settings):
    folder = RunFolder.create(earlier.with_name("new"))
    given = Overrides({"n_clusters": n_clusters, **QUICK, **settings})
    found, data = regroup(RunFolder.open(earlier), given, folder=folder)
    return folder, found, data


def test_an_image_run_keeps_its_backbone_and_has_other_heads(image_run):
    before = contents(image_run)
    folder, found, data = regrouped(image_run)
    assert contents(image_run) == before
    old, new = load(image_run), load(folder.path)
    assert (old.n_clusters, new.n_clusters) == (3, 2)
    for name, weight in old.network.backbone.state_dict().items():
        assert weight.equal(new.network.backbone.state_dict()[name]), name
    stored = folder.read_assignments()["cluster"].to_numpy()
    assert (new.predict(data.images) == stored).all()
    assert (stored == found.assigned.assignments).all()
    assert len(np.unique(stored)) == 2


def test_as_many_clusters_as_there_are_kinds_are_these_kinds(image_run):
    """The heads learn: from another number back to the right one, at a seed of their own."""
    two, _, data = regrouped(image_run, 2)
    three, _, _ = regrouped(two.path.rename(image_run.with_name("two")), 3, **{"train.seed": 5})
    assert cluster_accuracy(data.targets, load(three.path).predict(data.images)) > 0.95


def test_features_are_computed_once(image_run, monkeypatch):
    regrouped(image_run)

    def fails(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr("dcdc.prepare.stored_features.raw_features", fails)
    shutil.rmtree(image_run.with_name("new"))
    regrouped(image_run, 4)


def test_vectors_and_frozen_backbones_are_grouped_anew(vector_run, vectors_file):
    folder, _, _ = regrouped(vector_run)
    assert load(folder.path).predict(vectors_file).tolist() == (
        folder.read_assignments()["cluster"].to_pylist()
    )
    assert read_config(folder).data == read_config(RunFolder(vector_run)).data


def test_a_frozen_run_is_marked_as_before(frozen_run, photo_folder):
    folder, _, _ = regrouped(frozen_run)
    assert folder.read_metrics()["backbone"] == RunFolder(frozen_run).read_metrics()["backbone"]
    images = load_images(photo_folder, size=read_config(folder).data.size)
    assert stored_features(load(folder.path), images).shape == (24, 1280)


def test_the_images_settle_another_number(tmp_path):
    random = np.random.default_rng(0)
    rows = 6 * np.eye(4, 24)[np.arange(160) % 4] + random.normal(size=(160, 24))
    np.save(tmp_path / "rows.npy", rows.astype(np.float32))
    earlier = trained(tmp_path / "rows.npy", tmp_path / "rows")
    folder, found, _ = regrouped(earlier, "2-6")
    assert load(folder.path).n_clusters == 4
    assert folder.read_number()["number"] == found.number.number == 4


def test_the_report_tells_whose_features_they_are(image_run):
    folder, _, data = regrouped(image_run)
    page = write_report(folder, data).read_text()
    assert f"dcdc fit --run {image_run} --clusters 2" in page


def test_other_images_are_refused(image_run, tiny_file, tmp_path):
    held = np.load(tiny_file)
    other = tmp_path / "other.npz"
    np.savez(other, images=held["images"][:40], targets=held["targets"][:40])
    config = (image_run / "config.json").read_text()
    (image_run / "config.json").write_text(config.replace(str(tiny_file), str(other)))
    with pytest.raises(InputError, match="the source has other images than"):
        regrouped(image_run)
    assert not image_run.with_name("new").exists()


@pytest.mark.parametrize(
    "key", ["network.backbone", "data.size", "contrast.epochs", "train.precision"]
)
def test_what_is_not_of_the_heads_is_refused(image_run, key):
    with pytest.raises(InputError, match="has no meaning where the features of a run"):
        regrouped(image_run, **{key: 8})


def test_from_python_the_new_run_lies_beside(image_run):
    model = dcdc.regroup(image_run, 2, device="cpu", settings={"epochs": 2})
    assert model.n_clusters == 2
    assert "2 clusters" in repr(model.show_clusters())
    with pytest.raises(InputError, match="run-2 exists: move it away"):
        dcdc.regroup(image_run, 2)
    saved = model.save(image_run.with_name("saved"))
    assert str(image_run) not in (saved / "metrics.json").read_text()

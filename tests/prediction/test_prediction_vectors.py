"""Feature vectors, and photos for a frozen backbone: answered, sorted, gone on with, refused."""

import csv
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dcdc
from dcdc.engine.interruption import Interruption
from dcdc.errors import InputError
from dcdc.prediction import session
from dcdc.prediction.answers import images_for, predict_rows
from dcdc.prediction.session import PredictionStopped, predict_to_file
from dcdc.prediction.sorting import Sorting
from feature_runs import some_vectors


@pytest.fixture(scope="module")
def model(vector_run_once):
    return dcdc.load(vector_run_once, "cpu")


@pytest.fixture
def few_at_a_time(monkeypatch):
    monkeypatch.setattr("dcdc.engine.network_on_store.CHUNK", 10)


def rows_of(model, source, **how) -> list[dict]:
    stream = images_for(model, source, **how)
    on_bad = how.get("on_bad", "refuse")
    return [row for some in predict_rows(model, stream, on_bad=on_bad) for row in some.to_pylist()]


@pytest.mark.usefixtures("few_at_a_time")
def test_every_kind_of_file_gets_the_answers_of_the_model(model, tmp_path):
    vectors, targets = some_vectors(37, seed=1)
    np.save(tmp_path / "v.npy", vectors)
    np.savez(tmp_path / "v.npz", other=np.zeros(3), mine=vectors, targets=targets)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 12)
    pq.write_table(pa.table({"embedding": column, "label": targets}), tmp_path / "v.parquet")
    wanted = model.predict(vectors)
    assert len(set(wanted.tolist())) == 3
    for source, how in (("v.npy", {}), ("v.npz", {"column": "mine"}), ("v.parquet", {})):
        found = rows_of(model, tmp_path / source, **how)
        assert [row["cluster"] for row in found] == wanted.tolist()
        confidence = model.predict_proba(vectors).max(axis=1)
        assert np.allclose([row["confidence"] for row in found], confidence, atol=1e-6)
        assert ("target" in found[0]) == (source != "v.npy")


def test_a_run_s_own_vectors_get_the_clusters_that_its_training_gave(vector_run_once, vectors_file):
    model = dcdc.load(vector_run_once, "cpu")
    kept = pq.read_table(vector_run_once / "assignments.parquet").to_pydict()
    found = rows_of(model, vectors_file)
    assert [row["cluster"] for row in found] == kept["cluster"]
    assert [row["name"] for row in found] == kept["name"]
    assert [row["target"] for row in found] == kept["target"]


def test_a_frozen_backbone_sees_photos_as_it_did_in_training(frozen_run_once, photo_folder):
    """Training answers from stored features, a prediction computes them anew."""
    model = dcdc.load(frozen_run_once, "cpu")
    kept = pq.read_table(frozen_run_once / "assignments.parquet").to_pydict()
    stream = images_for(model, photo_folder)
    (block,) = stream.blocks(0, 100)
    assert block.pixels.shape[1:] == (model.size, model.size, 3)
    assert model.size == model.config["data"]["size"]
    found = rows_of(model, photo_folder)
    assert [row["cluster"] for row in found] == kept["cluster"]
    assert np.allclose([row["confidence"] for row in found], kept["confidence"], atol=1e-4)


def test_rows_that_are_not_numbers_are_refused_or_left_out(model, tmp_path):
    vectors, _ = some_vectors(20)
    vectors[4, 2], vectors[11] = np.nan, np.inf
    np.save(tmp_path / "v.npy", vectors)
    with pytest.raises(InputError, match=r"in 2 of 20 rows, first in row 4.*on_bad"):
        images_for(model, tmp_path / "v.npy")
    skipped = []
    stream = images_for(model, tmp_path / "v.npy", on_bad="skip")
    found = [
        row
        for some in predict_rows(model, stream, on_bad="skip", on_skip=skipped.append)
        for row in some.to_pylist()
    ]
    good = np.delete(vectors, [4, 11], axis=0)
    assert [row["cluster"] for row in found] == model.predict(good).tolist()
    assert [each.name for each in skipped] == ["image-0004", "image-0011"]
    done = predict_to_file(model, stream, tmp_path / "out.csv", on_bad="skip")
    assert (done.n_images, len(done.skipped)) == (18, 2)
    assert "image-0011" in done.skipped_file.read_text()


def test_another_width_is_refused(model, tmp_path):
    np.save(tmp_path / "v.npy", some_vectors(9, 11)[0])
    with pytest.raises(InputError, match=r"vectors of 12 features, those of .* have 11"):
        images_for(model, tmp_path / "v.npy")


def test_images_and_vectors_are_not_taken_for_each_other(
    model, frozen_run_once, photo_folder, vectors_file
):
    with pytest.raises(InputError, match=r"trained on feature vectors, .* holds images"):
        images_for(model, photo_folder)
    of_images = dcdc.load(frozen_run_once, "cpu")
    with pytest.raises(InputError, match=r"trained on images, .* holds feature vectors"):
        images_for(of_images, vectors_file)
    with pytest.raises(InputError, match="column = 'x' has no meaning"):
        images_for(of_images, photo_folder, column="x")
    with pytest.raises(InputError, match="trained on images"):
        of_images.assign(model.image_set(np.zeros((4, 1280), np.float32)))


@pytest.mark.usefixtures("few_at_a_time")
def test_a_prediction_that_was_cut_goes_on_and_ends_as_an_undisturbed_one(
    model, tmp_path, monkeypatch
):
    vectors, _ = some_vectors(60, seed=2)
    vectors[33] = np.nan
    np.save(tmp_path / "v.npy", vectors)
    stream = images_for(model, tmp_path / "v.npy", on_bad="skip")
    whole, cut = tmp_path / "whole.csv", tmp_path / "cut.csv"
    predict_to_file(model, stream, whole, features=whole.with_suffix(".npy"), on_bad="skip")

    class AfterSome(Interruption):
        def __enter__(self):
            self.n_asked = 0
            return self

        @property
        def wanted(self):
            self.n_asked += 1
            return "SIGINT" if self.n_asked > 5 else None

        @wanted.setter
        def wanted(self, _):
            pass

        def __exit__(self, *_):
            pass

    with monkeypatch.context() as patch:
        patch.setattr(session, "Interruption", AfterSome)
        with pytest.raises(PredictionStopped, match="of 60 images are kept"):
            predict_to_file(model, stream, cut, features=cut.with_suffix(".npy"), on_bad="skip")
    kept = []
    again = images_for(model, tmp_path / "v.npy", on_bad="skip")
    predict_to_file(
        model, again, cut, features=cut.with_suffix(".npy"), on_bad="skip", on_kept=kept.append
    )
    assert 0 < kept[0] < 60
    assert cut.read_bytes() == whole.read_bytes()
    assert cut.with_suffix(".npy").read_bytes() == whole.with_suffix(".npy").read_bytes()


def test_other_vectors_of_the_same_name_are_not_gone_on_with(model, tmp_path):
    file = tmp_path / "v.npy"
    np.save(file, some_vectors(20, seed=1)[0])
    before = images_for(model, file).fingerprint
    assert images_for(model, file).fingerprint == before
    np.save(file, some_vectors(20, seed=2)[0])
    assert images_for(model, file).fingerprint != before


def test_image_files_are_sorted_by_what_their_vectors_say(model, vectors_file, tmp_path):
    stream = images_for(model, vectors_file)
    done = predict_to_file(model, stream, tmp_path / "o.csv", sorting=Sorting(tmp_path / "sorted"))
    assert done.sorted.n_placed == 24
    with (tmp_path / "o.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            folder = tmp_path / "sorted" / f"cluster-0{row['cluster']}"
            copy = folder / row["name"].replace("/", "_")
            assert copy.read_bytes() == (vectors_file.parent / row["name"]).read_bytes()


def test_a_file_that_is_not_there_is_told_of_and_the_rest_goes_on(model, vectors_file, tmp_path):
    moved = shutil.copytree(vectors_file.parent, tmp_path / "moved")
    gone = moved / "photos" / "kind-1" / "04.png"
    gone.rename(tmp_path / "04.png")
    out, sorting = tmp_path / "o.csv", Sorting(tmp_path / "sorted")
    with pytest.raises(InputError, match=r"kind-1/04\.png is not at .*the same command goes on"):
        predict_to_file(model, images_for(model, moved / "vectors.npz"), out, sorting=sorting)
    (tmp_path / "04.png").rename(gone)
    done = predict_to_file(model, images_for(model, moved / "vectors.npz"), out, sorting=sorting)
    assert (done.sorted.n_placed, done.sorted.n_there) == (20, 4)


def test_vectors_with_names_of_their_own_keep_the_endings_of_their_files(
    model, vectors_file, tmp_path
):
    folder = shutil.copytree(vectors_file.parent, tmp_path / "named")
    with np.load(folder / "vectors.npz") as known:
        held = dict(known)
    np.savez(folder / "named.npz", **held, names=[f"id-{row}" for row in range(24)])
    sorting = Sorting(tmp_path / "sorted")
    predict_to_file(
        model, images_for(model, folder / "named.npz"), tmp_path / "o.csv", sorting=sorting
    )
    names = sorted(path.name for path in (tmp_path / "sorted").glob("*/*"))
    assert names == sorted(f"id-{row}.png" for row in range(24))


def test_without_files_there_is_nothing_to_sort(model, tmp_path):
    np.save(tmp_path / "v.npy", some_vectors(9)[0])
    stream = images_for(model, tmp_path / "v.npy")
    with pytest.raises(InputError, match="holds no image files to sort"):
        predict_to_file(model, stream, tmp_path / "o.csv", sorting=Sorting(tmp_path / "s"))

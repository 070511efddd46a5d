"""`DCDC.refine`: labels follow what people said, and images like those follow too."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from corrected_runs import N_IMAGES, mixed_images, mixed_vectors
from dcdc import DCDC
from dcdc.engine.edits import OUTSIDE, Edits, RunAnswers, write_edits
from dcdc.errors import InputError

VECTORS, KIND = mixed_vectors()
KIND_2 = np.flatnonzero(KIND == 2)
MOVED = {"kind": "move", "images": KIND_2[:4], "to": 2}


@pytest.fixture(scope="module")
def fitted_once():
    """Two clusters, of which one holds kinds 1 and 2."""
    settings = {"heads.batch_size": 32}
    model = DCDC(2, epochs=2, device="cpu", verbose=0, settings=settings).fit(VECTORS)
    assert len(set(model.labels_[KIND != 0].tolist())) == 1
    return pickle.dumps(model)


@pytest.fixture
def fitted(fitted_once):
    """To do with as one likes; as a pickle it holds no images."""
    return pickle.loads(fitted_once)


def test_images_like_those_that_were_moved_follow(fitted):
    before = fitted.labels_.copy()
    assert fitted.refine([MOVED], VECTORS) is fitted
    assert (fitted.labels_[KIND == 2] == 2).mean() > 0.9
    assert (fitted.labels_[KIND == 0] == before[KIND == 0]).all()
    assert fitted.n_clusters_ == 3
    assert fitted.cluster_sizes_.sum() == N_IMAGES
    new, kinds = mixed_vectors(60, seed=1)
    assert ((fitted.predict(new) == 2) == (kinds == 2)).mean() > 0.9
    assert fitted.n_iter_ == len(fitted.loss_curve_) > 2


@pytest.mark.slow
def test_images_are_at_hand_where_they_were_fitted():
    images, kinds = mixed_images()
    settings = {"network.sub_heads": 1, "heads.initialisation": "k-means", "heads.batch_size": 16}
    model = DCDC(2, epochs=1, backbone="small", device="cpu", verbose=0, settings=settings).fit(
        images
    )
    most = [np.bincount(model.labels_[kinds == kind]).argmax() for kind in range(3)]
    kind = next(kind for kind in range(3) if most.count(most[kind]) > 1)
    moved = np.flatnonzero(kinds == kind)[:4]
    model.refine([{"kind": "move", "images": moved, "to": 2}], whole_network=True)
    assert (model.labels_[kinds == kind] == 2).mean() > 0.8
    assert (model.labels_[kinds != kind] == 2).mean() < 0.2


OUTSIDERS = {"kind": "outside", "images": [0, 1]}


def test_images_of_no_cluster_have_the_label_of_noise(fitted):
    fitted.refine([MOVED, OUTSIDERS], VECTORS)
    assert fitted.labels_[:2].tolist() == [OUTSIDE, OUTSIDE]
    assert fitted.cluster_sizes_.sum() == N_IMAGES - 2
    assert fitted.predict(VECTORS[:2]).min() >= 0  # the network knows of no such thing


@pytest.mark.slow
def test_the_page_tells_of_corrections(fitted, tmp_path):
    fitted.refine([MOVED, OUTSIDERS], VECTORS)
    page = fitted.report(tmp_path / "page.html").read_text()
    assert "refined from" in page
    assert "in no cluster" in page


def test_a_second_round_does_not_forget_the_first(fitted):
    fitted.refine([MOVED], VECTORS)
    fitted.refine([{"kind": "name", "cluster": 2, "name": "owls"}, MOVED | {"to": 2}])
    first = fitted._grouped.taught.labelled.tolist()
    fitted.refine([{"kind": "together", "images": [0, 3]}])
    assert fitted._grouped.taught.labelled.tolist() == first == KIND_2[:4].tolist()
    again = pickle.loads(pickle.dumps(fitted))
    assert again._grouped.taught.labelled.tolist() == first


def test_edits_of_a_file(fitted, tmp_path):
    names = fitted._grouped.names
    answers = RunAnswers(names, fitted.labels_, 2)
    moved = {"kind": "move", "to": 2, "images": [[int(row), names[row]] for row in KIND_2[:4]]}
    write_edits(tmp_path / "edits.json", Edits(answers.digest).with_edit(moved, answers))
    fitted.refine(tmp_path / "edits.json", VECTORS)
    assert (fitted.labels_[KIND == 2] == 2).mean() > 0.9


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([], "no edits to learn from"),
        ([{"kind": "name", "cluster": 0, "name": "owls"}], "names alone"),
        ("none.json", "none.json"),
        (3, "list of dicts"),
        ([{"kind": "moved"}], "moved"),
        ([{"kind": "move", "images": [N_IMAGES], "to": 1}], f"0 to {N_IMAGES - 1}"),
        ([{"kind": "move", "images": [0], "to": 5}], "no cluster 5"),
        ([{"kind": "merge", "clusters": [0], "into": 1}], "leave 1 clusters"),
    ],
)
def test_what_cannot_be_learnt_is_told_in_a_line(fitted, edits, told):
    before = fitted.labels_.copy()
    with pytest.raises(InputError, match=told) as found:
        fitted.refine(edits, VECTORS)
    assert "\n" not in str(found.value)
    assert np.array_equal(fitted.labels_, before)


def test_it_needs_a_fit_and_its_images(fitted):
    with pytest.raises(NotFittedError):
        DCDC().refine([MOVED])
    with pytest.raises(InputError, match="give X"):
        fitted.refine([MOVED])
    with pytest.raises(InputError, match="give the same"):
        fitted.refine([MOVED], VECTORS[:50])
    one = DCDC(1, epochs=1, device="cpu", verbose=0).fit(VECTORS)
    with pytest.raises(InputError, match="n_clusters=1"):
        one.refine([MOVED])

"""What a model shows of itself: a gallery in notebooks, a table in terminals, a page, a bar."""

import contextlib
import html
import os
import pickle
import re
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import dcdc
from dcdc import DCDC, InputError
from dcdc.data import from_vectors
from dcdc.estimator import watching as watching_module
from dcdc.estimator.watching import EstimatorObserver, can_be_seen, watching
from dcdc.report.cluster_gallery import ClusterGallery
from dcdc.report.facts import clusters_of
from dcdc.run import run
from dcdc.run_folder import RunFolder

HOSTILE = '<img src=x onerror="alert(1)">\x1b[31m'
PICTURE = re.compile(r'<img src="data:image/(?:png|jpeg);base64,[\w+/=]+" title="([^"]*)"')


@pytest.fixture(scope="module")
def images(tiny_file):
    return np.load(tiny_file)["images"]


@pytest.fixture(scope="module")
def model(estimator, images):
    return estimator().fit(images)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, tiny_config, tiny_set, tiny_file):
    path = tmp_path_factory.mktemp("runs") / "tiny"
    config = replace(tiny_config, data=replace(tiny_config.data, source=str(tiny_file)))
    run(config, tiny_set, folder=RunFolder.create(path))
    return path


def test_a_fitted_estimator_displays_pictures_of_every_cluster(model, estimator):
    in_use = (model.cluster_sizes_ > 0).sum()
    bundle = model._repr_mimebundle_()
    pictures = PICTURE.findall(bundle["text/html"])
    assert len(pictures) == 2 * np.minimum(model.cluster_sizes_, 4).sum()
    assert len(PICTURE.findall(model.show_clusters(2)._repr_html_())) == 2 * in_use
    assert PICTURE.findall(model._repr_html_()) == pictures
    # Each cluster's pictures are its own: some by chance, then the surest.
    shown = [int(re.search(r"-(\d+),", says)[1]) for says in pictures]
    confidence = model._grouped.confidence
    for cluster in np.unique(model.labels_):
        own = [row for row in shown if model.labels_[row] == cluster]
        surest = own[len(own) // 2 :]
        assert list(confidence[surest]) == sorted(confidence[model.labels_ == cluster])[::-1][:4]
    assert not PICTURE.findall(estimator()._repr_html_())


def test_a_gallery_is_a_table_in_a_terminal(model):
    lines = repr(model.show_clusters()).splitlines()
    assert lines[0] == f"48 images in {(model.cluster_sizes_ > 0).sum()} clusters"
    found = {int(line.split()[0]): int(line.split()[1]) for line in lines[2:]}
    assert found == {k: n for k, n in enumerate(model.cluster_sizes_.tolist()) if n}


def test_names_from_outside_are_harmless(images):
    names = [f"{number}{HOSTILE}" for number in range(48)]
    confidence = np.linspace(0, 1, 48)
    clusters = clusters_of(np.arange(48) % 3, confidence, 3, np.array(names))
    called = dict.fromkeys(range(3), HOSTILE)
    gallery = ClusterGallery(clusters, confidence, names, images[..., None], HOSTILE, called)
    text, page = repr(gallery), gallery._repr_html_()
    assert "\x1b" not in text + page
    assert "<img src=x" not in page
    assert "onerror" in html.unescape(page)
    assert max(map(len, text.splitlines())) <= 79


def test_vectors_show_the_images_that_they_are_of(estimator, images, tmp_path):
    rows = images.reshape(48, -1).astype(np.float32)
    fitted = estimator(settings=None).fit(rows)
    assert "48 vectors in" in repr(fitted.show_clusters())
    page = fitted._repr_html_()
    assert "nothing tells which images" in page
    assert not PICTURE.findall(page)
    files = [tmp_path / f"{number}.png" for number in range(48)]
    for file, image in zip(files, images, strict=True):
        Image.fromarray(image).save(file)
    surest = fitted.show_clusters().clusters[0].members[0]
    files[surest].write_bytes(b"no image")
    page = estimator(settings=None).fit(from_vectors(rows, files=files))._repr_html_()
    assert len(PICTURE.findall(page)) == np.minimum(fitted.cluster_sizes_, 8).sum()
    assert "1 image cannot be read and is crossed out" in page


def test_a_pickle_says_that_it_has_no_images(model):
    again = pickle.loads(pickle.dumps(model))
    assert "a pickle does not hold the images" in repr(again.show_clusters())
    assert "48 images" in again._repr_html_()
    with pytest.raises(InputError, match="which a pickle does not hold: fit again"):
        again.report()


def test_a_loaded_run_displays_its_images_with_their_names(run_folder):
    model = dcdc.load(run_folder)
    assert repr(model) == "<TrainedModel of 3 clusters: images of 8x8x1, 'small', cpu>"
    says = PICTURE.findall(model._repr_html_())
    table = RunFolder.open(run_folder).read_assignments()
    names = table.column("name").to_pylist()
    assert 0 < len(says) <= 24
    assert all(each.split(",")[0] in names for each in says)
    assert "mostly" in repr(model.show_clusters())


def test_a_loaded_run_without_its_images_says_so(run_folder, tiny_file, tmp_path):
    moved = tiny_file.rename(tiny_file.with_suffix(".moved"))
    try:
        model = dcdc.load(run_folder)
        page = model._repr_html_()
        assert "images of the run are not at hand" in page
        assert "not at hand" in repr(model.show_clusters()).splitlines()[-1]
    finally:
        moved.rename(tiny_file)
    saved = dcdc.load(run_folder).save(tmp_path / "model")
    lone = dcdc.load(saved)
    assert repr(lone.show_clusters()) == (
        f"{saved} holds a model and no images: load the run folder to see them"
    )
    with pytest.raises(InputError, match="holds a model and no images"):
        lone.report()


def test_a_damaged_run_displays_what_is_wrong(run_folder):
    model = dcdc.load(run_folder)
    file = RunFolder.open(run_folder).assignments_file
    whole = file.read_bytes()
    try:
        file.write_bytes(whole[:-9])
        assert str(file) in model._repr_html_()
    finally:
        file.write_bytes(whole)


def test_a_model_that_knows_no_run_refuses(model):
    assert model.model_._repr_html_() is None
    with pytest.raises(InputError, match="does not know what it grouped"):
        model.model_.show_clusters()
    with pytest.raises(InputError, match="per_cluster=0 must be at least 1"):
        model.show_clusters(0)
    with pytest.raises(InputError, match=r"must be a file that ends in \.html"):
        model.report("report.pdf")


@pytest.mark.slow
def test_a_report_is_the_page_of_the_command_line(model, run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = model.report()
    assert page.resolve() == tmp_path / "dcdc-report.html"
    text = page.read_text(encoding="utf-8")
    assert "images from Python" in text
    assert len(re.findall("<img ", text)) > 20
    assert [*tmp_path.iterdir()] == [page.resolve()]
    loaded = dcdc.load(run_folder)
    own = loaded.report()
    assert own == run_folder / "report.html"
    assert loaded.report("pages/tiny.html").read_bytes() == own.read_bytes()


def test_no_bar_without_eyes(estimator, images, capfd, monkeypatch):
    assert DCDC().verbose is None
    estimator().fit(images)
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take any pipe for a terminal
    estimator().fit(images)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal_and_nothing_of_it_stays(monkeypatch):
    outer, inner = pytest.importorskip("pty").openpty()
    with os.fdopen(inner, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("COLUMNS", "80")
        with watching(None, "DCDC 2/4") as observer:
            with observer.counting("reading") as count:
                count(3, 7)
                observer._progress.refresh()
            observer.on_start(epoch=0, epochs=2, steps_left=6)
            observer.on_step({}, 16)
            observer._progress.refresh()
        with watching(0) as silent:
            assert isinstance(silent, EstimatorObserver)
        drawn = _read_all(outer)
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn)
    assert "DCDC 2/4: reading ━" in plain
    assert re.search(r"DCDC 2/4: epoch 1/2 [━╺╸]+ 1/6 ", plain)
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= 80
    assert drawn.endswith("\x1b[2K")  # the line is cleared


def _read_all(terminal):
    """All that was written so far."""
    os.set_blocking(terminal, False)
    found = b""
    with contextlib.suppress(BlockingIOError):
        while block := os.read(terminal, 65_536):
            found += block
    os.close(terminal)
    return found.decode()


def test_a_bar_in_a_notebook_is_one_output_that_changes(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            assert raw
            shown.append(data["text/plain"])

    def display(data, raw, display_id):
        assert raw
        assert display_id
        shown.append(data["text/plain"])
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    monkeypatch.setattr(watching_module, "_SECONDS", 0.0)
    assert can_be_seen()
    with watching(None) as observer:
        observer.on_start(epoch=0, epochs=2, steps_left=4)
        observer.on_step({}, 16)
        observer.on_step({}, 16)
    assert shown[0] == shown[-1] == ""
    assert re.fullmatch(r"DCDC: epoch 1/2 ━+[╸ ]* +2/4 .*", shown[-2])

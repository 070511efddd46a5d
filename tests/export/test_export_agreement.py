"""Exports answer as their model does, and a file that does not never appears."""

import json
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_model

import dcdc
from dcdc.augment import OriginalCopy
from dcdc.config import with_values
from dcdc.data import load_images
from dcdc.errors import InputError
from dcdc.export.check import (
    RESIZED_TOLERANCE,
    TOLERANCE,
    Agreement,
    compare,
    random_images,
    random_photos,
)
from dcdc.export.exported_network import OUTPUTS
from dcdc.export.formats import _NEEDED, METADATA, export_onnx, export_torch, open_onnx, open_torch
from dcdc.networks.backbones import BACKBONES, Backbone
from dcdc.networks.resnet import ResNet
from dcdc.prepare.presets import preset
from dcdc.run import run
from dcdc.run_folder import RunFolder

EXPORTS = {"onnx": (export_onnx, open_onnx, ".onnx"), "torch": (export_torch, open_torch, ".pt2")}


def needs_onnx() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install 'dcdc[onnx]'")


@pytest.fixture(params=list(EXPORTS))
def exporting(request):
    if request.param == "onnx":
        needs_onnx()
    return EXPORTS[request.param]


CASES = {
    "grey": {"resize_to": 10},
    "grid that does not fit": {"size": 21, "channels": 3},
    "sobel": {"backbone": "resnet34", "size": 32, "channels": 3, "sobel": True, "resize_to": 40},
    "unpooled": {"backbone": "resnet34-unpooled", "size": 32, "channels": 1},
    "patches": {"backbone": "patches", "size": 32, "channels": 3, "resize_to": 40},
}
LARGEST_BATCH = {"grey": 512}


@pytest.fixture
def few_blocks(monkeypatch):
    """One block a stage, of which deeper backbones have more."""
    for name, pool in (("resnet34", True), ("resnet34-unpooled", False)):
        shallow = Backbone(partial(ResNet, blocks=(1, 1, 1, 1), pool=pool))
        monkeypatch.setitem(BACKBONES._entries, name, shallow)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("case", list(CASES))
def test_an_export_answers_as_its_model_whatever_the_batch(case, exporting, tmp_path):
    export, open_file, suffix = exporting
    model = random_model(**CASES[case])
    path = tmp_path / f"model{suffix}"
    assert all(found.holds for found in export(model, path))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    batches = (1, 7, LARGEST_BATCH.get(case, 3))
    images = random_images(
        sum(batches), model.size, model.network.in_channels, np.random.default_rng(2)
    )
    assert len(np.unique(model.predict(images))) > 1  # else any export would do
    wide = compare(model, open_file(path), images, batches)
    assert wide.holds
    assert wide.probabilities < 2e-5


def test_photos_of_any_size_are_answered_as_the_run_does(exporting, tmp_path):
    export, open_file, suffix = exporting
    model = random_model(size=16, channels=3, resize_to=20)
    found = export(model, tmp_path / f"model{suffix}")
    assert [each.what for each in found[1:]] == [
        "images of 10 x 16",
        "images of 36 x 48",
        "images of 112 x 104",
    ]
    answer = open_file(tmp_path / f"model{suffix}")
    for shape in ((16, 31), (7, 5), (90, 61), (300, 200)):
        photos = random_photos(4, shape, 3, np.random.default_rng(3))
        assert len(np.unique(model.predict(photos))) > 1
        wide = compare(model, answer, photos, (1, 3), tolerance=RESIZED_TOLERANCE)
        assert wide.holds, shape


@pytest.mark.parametrize(
    "fault",
    [
        {"_rounded": lambda values: values * 0.9},
        {"_numbered": lambda length: torch.arange(length) + 0.5},  # half a pixel off
    ],
)
def test_a_graph_that_resizes_otherwise_is_not_written(fault, tmp_path, monkeypatch):
    model = random_model(size=16, channels=3)
    for name, wrong in fault.items():
        monkeypatch.setattr(f"dcdc.export.resizing.{name}", wrong)
    with pytest.raises(InputError, match=r"does not answer as the model does"):
        export_torch(model, tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["resnet34", "resnet18-unpooled"])
def test_whole_backbones_agree_too(backbone, exporting, tmp_path):
    export, _, suffix = exporting
    model = random_model(backbone=backbone, size=32, channels=3, sobel=True, resize_to=40)
    export(model, tmp_path / f"model{suffix}")  # which refuses what does not


@pytest.mark.slow
def test_every_digit_gets_its_runs_cluster(exporting, tmp_path):
    export, open_file, suffix = exporting
    image_set = load_images("digits")
    values = {"heads.epochs": 2, "heads.over_clustering_first": 1, "train.device": "cpu"}
    folder = RunFolder.create(tmp_path / "run")
    result = run(with_values(preset("digits"), values), image_set, folder=folder)
    path = folder.path / f"model{suffix}"
    export(dcdc.load(folder.path, "cpu"), path)
    answer = open_file(path)
    for batches in ((1797,), (1, 7, 512, 512, 765)):
        parts = np.split(image_set.images, np.cumsum(batches)[:-1])
        answers = [answer(part) for part in parts]
        assigned = np.concatenate([part["assignment"] for part in answers])
        probabilities = np.concatenate([part["probabilities"] for part in answers])
        assert np.array_equal(assigned, result.assigned.assignments)
        assert np.abs(probabilities - result.assigned.probabilities).max() < TOLERANCE


def test_a_file_holds_the_answers_alone_and_the_model_stays_as_it_was(exporting, tmp_path):
    export, open_file, suffix = exporting
    model = random_model()
    model.network.train()
    layout = model.network.memory_format
    before = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
    path = tmp_path / f"model{suffix}"
    export(model, path)

    found = open_file(path)(np.zeros((4, 8, 8, 1), np.uint8))
    assert tuple(found) == OUTPUTS
    assert (found["probabilities"].dtype, found["probabilities"].shape) == (np.float32, (4, 5))
    assert (found["assignment"].dtype, found["assignment"].shape) == (np.int64, (4,))
    assert (found["features"].dtype, found["features"].shape) == (np.float32, (4, 256))
    for folder in (Path(dcdc.__file__).parent, Path(torch.__file__).parent, tmp_path):
        assert str(folder).encode() not in path.read_bytes()

    after = model.network.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert model.network.training
    assert model.network.memory_format == layout
    assert all(parameter.requires_grad for parameter in model.network.parameters())


def test_an_export_that_answers_otherwise_leaves_nothing_behind(exporting, tmp_path, monkeypatch):
    export, _, suffix = exporting
    model = random_model(resize_to=10)
    (tmp_path / f"model{suffix}").write_text("an earlier one")
    monkeypatch.setattr(OriginalCopy, "centre_matrix", lambda copy: torch.eye(copy.size))
    with pytest.raises(InputError, match=r"does not answer as the model does.*tolerance 1e-04"):
        export(model, tmp_path / f"model{suffix}")
    assert [file.name for file in tmp_path.iterdir()] == [f"model{suffix}"]
    assert (tmp_path / f"model{suffix}").read_text() == "an earlier one"


def test_an_onnx_model_says_what_it_is(tmp_path):
    needs_onnx()
    import onnx

    model = random_model(channels=3)
    model.names = {0: "cats", 3: "Hühner"}
    export_onnx(model, tmp_path / "model.onnx")
    written = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(written, full_check=True)
    said = {entry.key: entry.value for entry in written.metadata_props}
    assert said.pop("dcdc")
    assert json.loads(said.pop("clusters")) == {"0": "cats", "3": "Hühner"}
    assert said == {"format": "1", "size": "8", "channels": "3", "n_clusters": "5"}
    (images,) = written.graph.input
    assert images.name == "images"
    assert [axis.dim_param or axis.dim_value for axis in images.type.tensor_type.shape.dim] == [
        *("batch", "height", "width", 3)
    ]
    assert [output.name for output in written.graph.output] == list(OUTPUTS)


@pytest.mark.slow
def test_an_older_runtime_gets_an_older_opset(tmp_path, monkeypatch):
    needs_onnx()
    import onnx

    monkeypatch.setattr("dcdc.export.formats._OPSETS", (999, 20))
    export_onnx(random_model(), tmp_path / "model.onnx")
    (opset,) = [
        entry.version
        for entry in onnx.load(tmp_path / "model.onnx").opset_import
        if entry.domain == ""
    ]
    assert opset == 20


@pytest.mark.slow
def test_a_torch_program_runs_where_dcdc_is_not(tmp_path):
    model = random_model(resize_to=10)
    model.names = {1: "dogs"}
    export_torch(model, tmp_path / "model.pt2")
    images = random_images(7, 8, 1, np.random.default_rng(0))
    np.save(tmp_path / "images.npy", images)
    program = f"""
import sys
sys.modules["dcdc"] = None  # importing it fails
import json, numpy, torch
extra = {{"{METADATA}": ""}}
program = torch.export.load("model.pt2", extra_files=extra).module()
found = program(torch.from_numpy(numpy.load("images.npy")))
numpy.save("found.npy", found["probabilities"].numpy())
print(json.loads(extra["{METADATA}"])["clusters"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"1": "dogs"}
    assert np.load(tmp_path / "found.npy") == pytest.approx(model.predict_proba(images), abs=1e-6)


@pytest.mark.parametrize(
    ("wrong", "holds"),
    [
        ({}, True),
        ({"probabilities": 2e-4}, False),
        ({"probabilities": float("nan")}, False),
        ({"features": 2e-4}, False),
        ({"features": float("nan")}, False),
        ({"reassigned": 1}, False),
    ],
)
def test_what_counts_as_agreement(wrong, holds):
    found = {"n_images": 17, "probabilities": 1e-6, "features": 1e-6, "reassigned": 0} | wrong
    assert Agreement("images", TOLERANCE, **found).holds == holds


def test_a_tie_may_fall_either_way_but_a_sure_image_may_not():
    model = random_model(n_clusters=2)
    images = random_images(6, 8, 1, np.random.default_rng(0))
    probabilities = np.tile(np.float32([0.5, 0.5]), (6, 1))
    probabilities[0] = 0.4, 0.6
    model.predict_proba = lambda _: probabilities
    features = model.transform(images)

    def answer(assignment):
        return lambda _: {
            "probabilities": probabilities,
            "assignment": np.array(assignment),
            "features": features,
        }

    assert compare(model, answer([1, 0, 1, 0, 1, 1]), images, (6,)).reassigned == 0
    assert compare(model, answer([0, 0, 1, 0, 1, 1]), images, (6,)).reassigned == 1

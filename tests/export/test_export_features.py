"""Exports of models on feature vectors and over pretrained backbones."""

import json

import numpy as np
import pytest
import torch
from test_export_agreement import EXPORTS, needs_onnx

import dcdc
from dcdc.errors import InputError
from dcdc.export.check import compare, random_images
from dcdc.export.exported_network import ExportedNetwork, _resize_matrix
from dcdc.export.formats import METADATA
from dcdc.networks.layers import resized
from feature_runs import some_vectors


@pytest.fixture(params=list(EXPORTS))
def exporting(request):
    if request.param == "onnx":
        needs_onnx()
    return EXPORTS[request.param]


def test_a_model_of_vectors_takes_vectors(vector_run_once, exporting, tmp_path):
    export, open_file, suffix = exporting
    model = dcdc.load(vector_run_once, "cpu")
    path = tmp_path / f"model{suffix}"
    export(model, path)  # which refuses what differs
    vectors, _ = some_vectors(21, seed=5)
    assert len(np.unique(model.predict(vectors))) == 3
    found = compare(model, open_file(path), vectors, (1, 20))
    assert found.holds
    assert found.probabilities < 1e-5


def test_the_input_of_an_onnx_model_is_named_vectors(vector_run_once, tmp_path):
    needs_onnx()
    import onnxruntime

    EXPORTS["onnx"][0](dcdc.load(vector_run_once, "cpu"), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape[1]) == ("vectors", "tensor(float)", 12)
    told = session.get_modelmeta().custom_metadata_map
    assert told["n_features"] == "12"
    assert "may have learnt from labels" in told["weights"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_over_a_frozen_backbone_images_are_resized_as_in_training(frozen_run_once, kind, tmp_path):
    if kind == "onnx":
        needs_onnx()
    export, open_file, suffix = EXPORTS[kind]
    model = dcdc.load(frozen_run_once, "cpu")
    assert model.size != model.network.input_size
    path = tmp_path / f"model{suffix}"
    export(model, path)  # which refuses what differs
    images = random_images(6, model.size, 3, np.random.default_rng(9))
    assert compare(model, open_file(path), images, (1, 5)).features < 5e-5
    if kind == "torch":
        extra = {METADATA: ""}
        torch.export.load(path, extra_files=extra)
        told = json.loads(extra[METADATA])
        assert "ImageNet-1k with labels (Apache-2.0)" in told["weights"]
        assert json.loads(told["backbone"])["frozen"] is True


@pytest.mark.parametrize(("side", "given"), [(32, 64), (48, 31), (224, 96)])
def test_a_product_of_matrices_resizes_as_the_network_does(side, given):
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    matrix = _resize_matrix(side, given)
    found = (matrix @ images @ matrix.T).clamp(0, 1)
    torch.testing.assert_close(found, resized(images, given), atol=2e-6, rtol=0)
    assert _resize_matrix(side, side) is None


def test_a_backbone_that_cannot_be_traced_is_told_in_one_line(
    frozen_run_once, tmp_path, monkeypatch
):
    model = dcdc.load(frozen_run_once, "cpu")

    def untraceable(_self, images):
        return images.sum().item()

    monkeypatch.setattr(ExportedNetwork, "_features", untraceable)
    with pytest.raises(InputError, match="backbone efficientnet-lite0 cannot be traced") as refused:
        EXPORTS["torch"][0](model, tmp_path / "model.pt2")
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())

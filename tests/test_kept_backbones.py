"""Models over backbones from files: a run folder, or a saved model, opens where those are gone."""

import json
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import dcdc
from dcdc.errors import InputError
from dcdc.export.formats import export_torch
from dcdc.networks.pretrained import public_spec, spec_of_kept
from feature_runs import trained

CARD = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4], "licence": "MIT", "size": 16}


class Net(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(nn.Conv2d(3, 9, 4, 4), nn.ReLU(), nn.Conv2d(9, 7, 2))

    def forward(self, x):
        return self.layers(x).mean((2, 3))


def write_backbone(path, seed: int = 0):
    net, arguments = Net(seed).eval(), (torch.rand(2, 3, 16, 16),)
    shapes = ({0: torch.export.Dim("batch")},)
    if path.suffix == ".onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
        how = {"dynamo": True, "dynamic_shapes": shapes, "verbose": False, "external_data": False}
        torch.onnx.export(net, arguments, path, **how)
    else:
        torch.export.save(torch.export.export(net, arguments, dynamic_shapes=shapes), path)
    path.with_name(f"{path.name}.json").write_text(json.dumps(CARD))
    return path


@pytest.fixture
def pixels():
    return np.random.default_rng(5).integers(0, 256, (9, 32, 32, 3), np.uint8)


@pytest.mark.parametrize("name", ["mine.onnx", "mine.pt2"])
def test_a_run_folder_and_a_saved_model_need_nothing_beside_them(
    name, photo_folder, pixels, tmp_path
):
    private = tmp_path / "home-of-somebody"
    private.mkdir()
    file = write_backbone(private / name)
    values = {"network.backbone": f"file:{file}", "data.size": 32}
    run = trained(photo_folder, tmp_path / "run", **values)
    wanted = dcdc.load(run, "cpu").predict_proba(pixels)
    assert len(np.unique(wanted.round(4), axis=0)) > 1
    saved_before = dcdc.load(run, "cpu").save(tmp_path / "before")
    shutil.rmtree(private)
    moved = shutil.move(run, tmp_path / "moved")
    model = dcdc.load(moved, "cpu")
    assert np.array_equal(model.predict_proba(pixels), wanted)
    saved = model.save(tmp_path / "saved")
    shutil.rmtree(moved)
    for folder in (saved_before, saved):
        assert {each.name for each in (folder / "backbone").iterdir()} == {name, f"{name}.json"}
        assert np.array_equal(dcdc.load(folder, "cpu").predict_proba(pixels), wanted)
        for each in ("config.json", "metrics.json", "README.md"):
            text = (folder / each).read_text()
            assert private.name not in text
            assert f"file:{name}" in text
    dcdc.load(saved, "cpu").save(saved)  # its own folder, written anew
    assert np.array_equal(dcdc.load(saved, "cpu").predict_proba(pixels), wanted)
    altered = bytearray((saved / "backbone" / name).read_bytes())
    altered[len(altered) // 2] ^= 1
    (saved / "backbone" / name).write_bytes(altered)
    with pytest.raises(InputError, match=f"{name} was altered: .*: restore it"):
        dcdc.load(saved, "cpu")


def test_two_onnx_models_do_not_share_their_stored_features(photo_folder, tmp_path):
    """Their weights are in their files alone."""
    answers = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        file = write_backbone(folder / "mine.onnx", seed)
        run = trained(photo_folder, folder / "run", **{"network.backbone": f"file:{file}"})
        with np.load(run / "sample.npz") as sample:
            answers.append(sample["features"])
    assert not np.allclose(answers[0], answers[1], atol=0.1)


def test_a_model_over_onnx_is_not_exported_and_says_so(photo_folder, tmp_path):
    file = write_backbone(tmp_path / "mine.onnx")
    run = trained(photo_folder, tmp_path / "run", **{"network.backbone": f"file:{file}"})
    with pytest.raises(InputError, match="cannot be traced, so the model cannot be exported"):
        export_torch(dcdc.load(run, "cpu"), tmp_path / "model.pt2")


def test_a_model_of_transformers_is_rebuilt_from_its_settings(photo_folder, pixels, tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**sizes, intermediate_size=16, image_size=32, patch_size=16)
    folder = tmp_path / "somebody" / "vit"
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    card = {"image_mean": CARD["mean"], "image_std": CARD["std"], "size": {"height": 32}}
    (folder / "preprocessor_config.json").write_text(json.dumps(card))
    run = trained(photo_folder, tmp_path / "run", **{"network.backbone": f"hf:{folder}"})
    wanted = dcdc.load(run, "cpu").predict_proba(pixels)
    shutil.rmtree(folder.parent)
    saved = dcdc.load(run, "cpu").save(tmp_path / "saved")
    shutil.rmtree(run)
    assert np.array_equal(dcdc.load(saved, "cpu").predict_proba(pixels), wanted)
    assert json.loads((saved / "config.json").read_text())["network"]["backbone"] == "hf:vit"


def test_models_of_vectors_and_of_a_frozen_backbone_come_back_as_they_were(
    vector_run_once, frozen_run_once, pixels, tmp_path
):
    for run, rows in (
        (vector_run_once, np.random.default_rng(0).normal(size=(9, 12)).astype(np.float32)),
        (frozen_run_once, pixels),
    ):
        model = dcdc.load(run, "cpu")
        again = dcdc.load(model.save(tmp_path / run.parent.name), "cpu")
        assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
        assert np.array_equal(again.transform(rows), model.transform(rows))
        assert again.training_features() is not None
        assert not (tmp_path / run.parent.name / "backbone").exists()
    with pytest.raises(InputError, match="vectors of 12 features, these have 5"):
        dcdc.load(vector_run_once, "cpu").predict(np.zeros((3, 5)))


@pytest.mark.parametrize(
    ("spec", "public", "kept"),
    [
        ("resnet18", "resnet18", "resnet18"),
        ("timm:vit:224@/home/me/w.safetensors", "timm:vit:224@w.safetensors", "timm:vit:224"),
        ("timm:vit_small.lvd142m", "timm:vit_small.lvd142m", "timm:vit_small.lvd142m"),
        ("torchvision:r@/home/w.safetensors", "torchvision:r@w.safetensors", "torchvision:r"),
        ("hf:facebook/dinov2-small", "hf:facebook/dinov2-small", "hf:facebook/dinov2-small"),
        ("hf:./models/mine", "hf:mine", "hf:./models/mine"),
        ("file:/home/me/a.onnx", "file:a.onnx", "file:/home/me/a.onnx"),
    ],
)
def test_what_others_read_of_a_backbone_s_place(spec, public, kept, tmp_path):
    assert public_spec(spec) == public
    assert spec_of_kept(spec, tmp_path / "none") == kept

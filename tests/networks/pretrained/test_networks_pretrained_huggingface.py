"""transformers' models with random weights, in folders and in a cache of the hub's form."""

import json
import pickle
import sys

import pytest
import torch

from dcdc.errors import InputError
from dcdc.networks import build_backbone, find_backbone
from dcdc.networks.pretrained import keep_files, spec_of_kept

transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 16,
}
TEXT = {**SMALL, "num_hidden_layers": 1, "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2}
PROCESSOR = {
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.4],
    "size": {"shortest_edge": 40},
    "crop_size": {"height": 32, "width": 32},
    "do_center_crop": True,
}
CONFIGS = {
    "dinov2": lambda: transformers.Dinov2Config(**{**SMALL, "image_size": 48}),
    "vit": lambda: transformers.ViTConfig(**SMALL),
    "resnet": lambda: transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    ),
    "clip": lambda: transformers.CLIPConfig(vision_config=SMALL, text_config=TEXT),
    "siglip": lambda: transformers.SiglipConfig(vision_config=SMALL, text_config=TEXT),
}


def one_line(action) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def model_folder(tmp_path):
    def make(kind: str):
        torch.manual_seed(1)
        model = transformers.AutoModel.from_config(CONFIGS[kind]()).eval()
        folder = tmp_path / kind
        model.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
        return folder, model

    return make


def loaded(spec: str, in_channels: int = 3):
    module = build_backbone(spec, in_channels)
    find_backbone(spec).load_weights(module)
    return module.eval()


@pytest.mark.parametrize(
    ("kind", "pooled"),
    [
        ("dinov2", lambda model, x: model(pixel_values=x).pooler_output),
        ("vit", lambda model, x: model(pixel_values=x).last_hidden_state[:, 0]),
        ("resnet", lambda model, x: model(pixel_values=x).pooler_output.flatten(1)),
        ("clip", lambda model, x: model.vision_model(pixel_values=x).pooler_output),
        ("siglip", lambda model, x: model.vision_model(pixel_values=x).pooler_output),
    ],
)
def test_features_are_what_the_model_pools(kind, pooled, model_folder, capfd):
    folder, model = model_folder(kind)
    capfd.readouterr()
    module = loaded(f"hf:{folder}")
    assert capfd.readouterr() == ("", "")  # nothing below the entry points prints
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(module(images), pooled(model, images))
        assert module(images).shape == (2, module.n_features)
        grey = images[:, :1]
        torch.testing.assert_close(module(grey), module(grey.repeat(1, 3, 1, 1)))
        assert module(torch.rand(1, 3, 64, 64)).shape == (1, module.n_features)


def test_metadata_are_those_of_its_own_files(model_folder):
    folder, _ = model_folder("vit")
    told = find_backbone(f"hf:{folder}").pretrained
    assert (told.size, told.mean, told.std) == (32, (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    assert (told.licence, told.trained_on, told.uses_labels) == ("unknown", "unknown", None)
    (folder / "README.md").write_text("---\ntags: [x]\nlicense: apache-2.0\n---\n# Model\n")
    del (changed := dict(PROCESSOR))["do_center_crop"]
    (folder / "preprocessor_config.json").write_text(json.dumps(changed))
    told = find_backbone(f"hf:{folder}").pretrained
    assert (told.licence, told.size) == ("Apache-2.0", 40)


def in_cache(hub_cache, repo: str, folder):
    for path in folder.iterdir():
        hub_cache(repo, path.name, path.read_bytes())


def test_a_model_of_the_hubs_cache_needs_no_network(model_folder, hub_cache):
    folder, model = model_folder("dinov2")
    in_cache(hub_cache, "facebook/dinov2-tiny", folder)
    module = loaded("hf:facebook/dinov2-tiny")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(module(images), model(pixel_values=images).pooler_output)
    told = find_backbone("hf:facebook/dinov2-tiny").pretrained
    assert (told.trained_on, told.uses_labels) == ("LVD-142M", False)


def test_without_its_weights_the_architecture_is_built_all_the_same(model_folder, hub_cache):
    folder, _ = model_folder("vit")
    (folder / "model.safetensors").unlink()
    in_cache(hub_cache, "someone/vit", folder)
    module = build_backbone("hf:someone/vit", 3)
    told = one_line(lambda: find_backbone("hf:someone/vit").load_weights(module))
    assert "needs model.safetensors of the hub's someone/vit" in told
    assert "hf:./FOLDER" in told


@pytest.mark.usefixtures("hub_cache")
def test_without_a_network_it_says_which_file_to_place_where():
    told = one_line(lambda: find_backbone("hf:facebook/dinov2-small"))
    assert "needs config.json of the hub's facebook/dinov2-small" in told
    assert "there is no network" in told


def test_a_pickle_is_refused(model_folder):
    folder, _ = model_folder("vit")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    told = one_line(lambda: loaded(f"hf:{folder}"))
    assert "there is no model.safetensors" in told
    assert "pickles (.bin) can run code and are refused" in told


def test_weights_that_do_not_fit(model_folder):
    folder, _ = model_folder("vit")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    assert "do not fit: it has no " in one_line(lambda: loaded(f"hf:{folder}"))
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 48}))
    told = one_line(lambda: loaded(f"hf:{folder}"))
    assert " is 64" in told
    assert "where the backbone has 48" in told
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-50])
    assert "not a whole safetensors file" in one_line(lambda: loaded(f"hf:{folder}"))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("config.json", "{}", "transformers cannot read"),
        ("config.json", '{"model_type": "bert"}', "is no model of images"),
        ("preprocessor_config.json", "{", "is no JSON"),
        ("preprocessor_config.json", "{}", "has no image_mean"),
    ],
)
def test_files_that_say_nothing_of_use(model_folder, name, text, told):
    folder, _ = model_folder("vit")
    (folder / name).write_text(text)
    assert told in one_line(lambda: build_backbone(f"hf:{folder}", 3))


def test_code_of_a_repository_is_never_run(model_folder):
    folder, _ = model_folder("vit")
    (folder / "own.py").write_text("raise SystemExit('it was run')\n")
    config = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    assert "transformers cannot read" in one_line(lambda: build_backbone(f"hf:{folder}", 3))


def test_names_that_cannot_be_and_a_package_that_is_not_there(tmp_path, monkeypatch):
    assert "is written OWNER/NAME" in one_line(lambda: find_backbone("hf:dinov2"))
    gone = tmp_path / "gone"
    assert f"there is no folder {gone}" in one_line(lambda: find_backbone(f"hf:{gone}"))
    monkeypatch.setitem(sys.modules, "transformers", None)
    told = one_line(lambda: find_backbone("hf:facebook/dinov2-small"))
    assert told.endswith("needs the package transformers: pip install 'dcdc[hf]'")


def test_kept_files_build_it_where_the_cache_is_gone(model_folder, hub_cache, tmp_path):
    folder, _ = model_folder("vit")
    in_cache(hub_cache, "someone/vit", folder)
    before = loaded("hf:someone/vit")
    kept = tmp_path / "run" / "backbone"
    assert {path.name for path in keep_files("hf:someone/vit", kept)} == {
        *("config.json", "preprocessor_config.json"),
    }
    (tmp_path / "hub").rename(tmp_path / "elsewhere")
    after = build_backbone(spec_of_kept("hf:someone/vit", kept), 3).eval()
    after.load_state_dict(before.state_dict())
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(after(images), before(images))
    assert keep_files("resnet18", kept) == []
    assert spec_of_kept("resnet18", kept) == "resnet18"

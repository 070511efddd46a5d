"""Where backbones and their weights come from: tags, the hub's answers, schemes from outside."""

import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import BACKBONE_SCHEMES, Backbone, find_backbone
from dcdc.networks.pretrained import efficientnet_lite0
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.training_data import of_name, of_tag
from dcdc.networks.pretrained.weight_files import hub_file


@pytest.mark.parametrize(
    ("tag", "trained_on", "uses_labels"),
    [
        ("", "unknown", None),
        ("ra2", "unknown", None),
        ("a1_in1k", "ImageNet-1k", True),
        ("augreg_in21k_ft_in1k", "ImageNet-21k, then ImageNet-1k", True),
        ("lvd1689m", "LVD-1689M", False),
        ("dino", "ImageNet-1k", False),
        ("mae", "ImageNet-1k", False),
        ("mae_in1k_ft_in1k", "ImageNet-1k", True),
        ("in22k_ijepa", "ImageNet-22k", False),
        ("mim_in22k", "ImageNet-22k", None),
        ("laion2b", "image-text pairs of the web (LAION-2B)", False),
        (
            "laion2b_ft_in12k_in1k",
            "image-text pairs of the web (LAION-2B), then ImageNet-12k, then ImageNet-1k",
            True,
        ),
    ],
)
def test_what_a_tag_says_of_the_data_and_labels(tag, trained_on, uses_labels):
    assert of_tag(tag) == (trained_on, uses_labels)


def test_what_a_repository_s_name_says():
    assert of_name("facebook/dinov2-small") == ("LVD-142M", False)
    assert of_name("google/vit-base-patch16-224-in21k") == ("ImageNet-21k", True)
    assert of_name("someone/dinov2-small") == ("unknown", None)


def test_a_scheme_from_outside(monkeypatch):
    monkeypatch.setattr(BACKBONE_SCHEMES, "_entries", dict(BACKBONE_SCHEMES._entries))
    BACKBONE_SCHEMES.register("mine", lambda rest: Backbone(lambda _: nn.Linear(1, int(rest))))
    assert find_backbone("mine:7").build(3).out_features == 7


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("GatedRepoError", "only to those who accepted its terms"),
        ("RepositoryNotFoundError", "the hub has no repository owner/name"),
        ("RevisionNotFoundError", "owner/name has no revision 'v7'"),
        ("EntryNotFoundError", "has no model.safetensors, and pickles (.bin) are refused"),
        ("LocalEntryNotFoundError", "there is no network"),
        ("OfflineModeIsEnabled", "there is no network"),
    ],
)
@pytest.mark.usefixtures("hub_cache")
def test_what_the_hub_answers_is_one_line(kind, told, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    error = getattr(hub.errors, kind)

    def answer(*_, **__):
        raise error.__new__(error)

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")  # it alone knows the hub's number
    monkeypatch.setattr(hub, "hf_hub_download", answer)
    with pytest.raises(InputError) as caught:
        hub_file("owner/name", "model.safetensors", of="x:y", otherwise="do that", revision="v7")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_package_that_is_broken_says_why(tmp_path, monkeypatch):
    (tmp_path / "broken_here.py").write_text("raise RuntimeError('operator nms\\ndoes not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"cannot be imported: operator nms$"):
        required("broken_here", of="the backbone x", extra="x")


def test_a_package_that_misses_another_names_that_one(tmp_path, monkeypatch):
    (tmp_path / "misses_one.py").write_text("import not_there_at_all.part")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="needs the package not_there_at_all: pip install"):
        required("misses_one", of="the backbone x", extra="x")


def test_what_is_installed_is_available(monkeypatch):
    assert efficientnet_lite0.is_available()
    monkeypatch.setitem(sys.modules, efficientnet_lite0.WEIGHTS, None)
    assert not efficientnet_lite0.is_available()
    monkeypatch.setitem(sys.modules, efficientnet_lite0.WEIGHTS, ModuleType("no_spec"))
    assert not efficientnet_lite0.is_available()


def test_no_weight_is_read_before_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("weights were read"))
    find_backbone("efficientnet-lite0").build(3)

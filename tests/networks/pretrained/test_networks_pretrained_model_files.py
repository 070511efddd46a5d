"""Backbones of one file: exported programs and ONNX models, and files that are refused."""

import io
import json
import pickle
import sys
import zipfile

import pytest
import torch
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import build_backbone, find_backbone
from dcdc.networks.pretrained import frozen_for_inference

CARD = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4]}


class Net(nn.Module):
    """A convolution, a norm, attention over tokens: B x 3 x 16 x 16 to B x 6."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 4, 4), nn.BatchNorm2d(6), nn.GELU())
        self.norm = nn.LayerNorm(6)
        self.register_buffer("places", torch.randn(1, 16, 6))

    def forward(self, x):
        tokens = (self.stem(x).flatten(2).transpose(1, 2) + self.places).unsqueeze(1)
        q, k = self.norm(tokens).chunk(2, dim=-1)
        mixed = nn.functional.scaled_dot_product_attention(q, k, tokens)
        return mixed.reshape(x.shape[0], -1, 6).mean(1)


@pytest.fixture
def net():
    torch.manual_seed(0)
    net = Net()
    net(torch.rand(8, 3, 16, 16))  # statistics of its own
    return net.eval()


def one_line(action) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def export(net, path, dynamic: bool = True, card: dict | None = CARD):
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    program = torch.export.export(net, (torch.rand(2, 3, 16, 16),), dynamic_shapes=shapes)
    torch.export.save(program, path)
    if card is not None:
        path.with_name(path.name + ".json").write_text(json.dumps(card))
    return path


def rewritten(path, change):
    """The archive with some entries changed: `change(name, data) -> data`."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, change(name, data))


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_exported_program_gives_the_features_of_its_module(net, tmp_path, dynamic):
    path = export(net, tmp_path / "net.pt2", dynamic)
    backbone = find_backbone(f"file:{path}")
    assert (backbone.pretrained.size, backbone.pretrained.mean) == (16, (0.4, 0.5, 0.6))
    assert backbone.pretrained.trained_on == "unknown"
    module = build_backbone(f"file:{path}", 3)
    images = torch.rand(5, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(module(images), net(images))
        torch.testing.assert_close(frozen_for_inference(module)(images), net(images))
    assert module.n_features == 6
    module(images).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    backbone.load_weights(module)
    with torch.no_grad():
        torch.testing.assert_close(module(images), net(images))


class Spy:
    """Would leave a trace, were its pickle opened."""

    opened = False

    def __reduce__(self):
        return setattr, (Spy, "opened", True)


def test_a_pickle_among_the_sample_inputs_is_never_opened(net, tmp_path):
    path = export(net, tmp_path / "net.pt2")
    evil = io.BytesIO()
    torch.save(Spy(), evil)
    rewritten(path, lambda n, data: evil.getvalue() if "sample_inputs" in n else data)
    with torch.no_grad():
        assert build_backbone(f"file:{path}", 3)(torch.rand(3, 3, 16, 16)).shape == (3, 6)
    assert not Spy.opened


def test_texts_of_symbolic_shapes_and_guards_are_never_evaluated(net, tmp_path):
    path = export(net, tmp_path / "net.pt2")
    trace = tmp_path / "trace"
    code = f"__import__('pathlib').Path({str(trace)!r}).touch()"

    def change(name, data):
        if not name.endswith("models/model.json"):
            return data
        program = json.loads(data)
        for value in program["graph_module"]["graph"]["sym_int_values"].values():
            value["as_expr"]["expr_str"] = code
        program["guards_code"] = [code]
        return json.dumps(program)

    rewritten(path, change)
    with torch.no_grad():
        build_backbone(f"file:{path}", 3)(torch.rand(3, 3, 16, 16))
    assert not trace.exists()


def changed_program(path, change):
    def in_model(name, data):
        if not name.endswith("models/model.json"):
            return data
        program = json.loads(data)
        change(program["graph_module"]["graph"])
        return json.dumps(program)

    rewritten(path, in_model)


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "torch.load",
        "torch.ops.aten.from_file.default",
        "torch.ops.higher_order.cond",
        "_operator.attrgetter",
        "torch.ops.aten.__class__.__init__",
    ],
)
def test_a_program_that_asks_for_anything_else_is_refused(net, tmp_path, target):
    path = export(net, tmp_path / "net.pt2")
    changed_program(path, lambda graph: graph["nodes"][1].update(target=target))
    told = one_line(lambda: build_backbone(f"file:{path}", 3))
    assert f"asks for {target}, which is none of torch's tensor operators" in told


def test_pickled_weights_in_a_program_are_refused(net, tmp_path):
    path = export(net, tmp_path / "net.pt2")

    def change(name, data):
        if not name.endswith("weights_config.json"):
            return data
        settings = json.loads(data)
        next(iter(settings["config"].values()))["use_pickle"] = True
        return json.dumps(settings)

    rewritten(path, change)
    assert "holds a pickle (weight_0)" in one_line(lambda: find_backbone(f"file:{path}"))


@pytest.mark.parametrize("data", [b"", b"no archive", pickle.dumps(Spy())])
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_a_file_that_is_something_else_is_one_line(tmp_path, data, suffix):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(data)
    told = one_line(lambda: find_backbone(f"file:{path}"))
    assert "is not a program" in told or "onnxruntime cannot open" in told
    assert not Spy.opened


@pytest.mark.parametrize("name", ["net.pt", "net.pth", "net.bin", "net.pkl", "net.ckpt"])
def test_a_file_that_may_be_a_pickle_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Spy()))
    told = one_line(lambda: find_backbone(f"file:{tmp_path / name}"))
    assert "may be a pickle, which can run code when it is opened: refused" in told
    assert not Spy.opened


def test_weights_alone_another_kind_and_no_file(tmp_path):
    told = one_line(lambda: find_backbone("file:weights.safetensors"))
    assert "holds weights alone: name their architecture too, as timm:NAME@PATH" in told
    assert "none of the model files that can be read" in one_line(
        lambda: find_backbone("file:net.h5")
    )
    gone = tmp_path / "gone.pt2"
    assert one_line(lambda: find_backbone(f"file:{gone}")) == f"there is no file {gone}"


@pytest.mark.parametrize(
    ("card", "told"),
    [
        (None, "nothing says how images for"),
        ({"mean": [0.5], "std": [0.5]}, "nothing says how images for"),
        ({**CARD, "std": [0, 0, 0]}, "nothing says how images for"),
        ({**CARD, "size": 99}, "says 99 pixels, but"),
    ],
)
def test_what_must_be_known_of_a_file(net, tmp_path, card, told):
    path = export(net, tmp_path / "net.pt2", card=card)
    assert told in one_line(lambda: find_backbone(f"file:{path}"))


def test_what_a_card_says_is_kept(net, tmp_path):
    card = {**CARD, "licence": "MIT", "trained_on": "my photos", "uses_labels": False}
    path = export(net, tmp_path / "net.pt2", card=card)
    told = find_backbone(f"file:{path}").pretrained
    assert (told.licence, told.trained_on, told.uses_labels) == ("MIT", "my photos", False)


@pytest.fixture
def onnx_path(net, tmp_path, request):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "net.onnx"
    shapes = ({0: torch.export.Dim("batch")},) if request.param else None
    arguments = (torch.rand(2, 3, 16, 16),)
    torch.onnx.export(net, arguments, path, dynamo=True, dynamic_shapes=shapes, verbose=False)
    path.with_name("net.onnx.json").write_text(json.dumps(CARD))
    return path


@pytest.mark.parametrize("onnx_path", [True, False], indirect=True)
def test_an_onnx_model_gives_the_features_of_its_module(net, onnx_path):
    backbone = find_backbone(f"file:{onnx_path}")
    assert not backbone.trainable
    assert backbone.pretrained.size == 16
    module = build_backbone(f"file:{onnx_path}", 1)
    assert module.n_features == 6
    images = torch.rand(5, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(module(images), net(images), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(frozen_for_inference(module)(images), module(images))


@pytest.mark.parametrize("onnx_path", [True], indirect=True)
def test_without_onnxruntime_the_extra_is_named(onnx_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    told = one_line(lambda: find_backbone(f"file:{onnx_path}"))
    assert told.endswith("needs the package onnxruntime: pip install 'dcdc[onnx]'")

"""`dcdc export`, and a model folder in a run's place."""

import json
from importlib.util import find_spec

import pytest

import dcdc as package
from dcdc.export.formats import _NEEDED


def test_export_says_where_and_how_well_it_agrees(dcdc, finished, tmp_path):
    (finished / "names.json").write_text(json.dumps({"format": 1, "clusters": {"0": "stripes"}}))
    code, out, err = dcdc("export", finished, "--format", "torch")
    assert (code, err) == (0, "")
    assert "runs/tiny/model.pt2 (" in out
    assert "tolerance 1e-04: 17 random images of the run's size" in out
    assert "tolerance 5e-02: 3 random images of 18 x 24" in out
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert dcdc("export", finished, "--format", "torch")[0] == 0  # its own file is replaced
    assert dcdc("export", finished, "--format", "torch", "--out", "there/digits.pt2")[0] == 0
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["digits.pt2"]


def test_onnx_is_the_default(dcdc, finished):
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install 'dcdc[onnx]'")
    code, out, err = dcdc("export", finished)
    assert (code, err) == (0, "")
    assert "runs/tiny/model.onnx (" in out
    assert (finished / "model.onnx").stat().st_size > 1000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--format", "onx"), "did you mean 'onnx'?"),
        (("--format", "torch", "--out", "model.onnx"), "must end in .pt2 for --format torch"),
        (("--format", "torch", "--out", "mine.pt2"), "mine.pt2 exists"),
        (("--format", "torch", "--out", "file/model.pt2"), "file"),
    ],
)
def test_wrong_flags_are_one_line(dcdc, finished, tmp_path, flags, message):
    (tmp_path / "mine.pt2").write_text("mine")
    (tmp_path / "file").write_text("no folder")
    code, out, err = dcdc("export", finished, *flags)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert (tmp_path / "mine.pt2").read_text() == "mine"
    assert not list(finished.glob("model.*t*2"))


def test_a_missing_extra_says_what_to_install(dcdc, finished, monkeypatch):
    monkeypatch.setattr("dcdc.export.formats.find_spec", lambda _: None)
    code, _, err = dcdc("export", finished, "--format", "onnx")
    assert (code, err.count("\n")) == (2, 1)
    assert "pip install 'dcdc[onnx]'" in err


def test_what_is_no_finished_run_is_refused(dcdc, finished):
    assert "is not a run folder" in dcdc("export", "nowhere", "--format", "torch")[2]
    (finished / "model.safetensors").unlink()
    code, _, err = dcdc("export", finished, "--format", "torch")
    assert (code, err.count("\n")) == (2, 1)
    assert "has no model yet" in err


def test_a_model_folder_predicts_as_its_run(dcdc, finished, tiny_file, tmp_path):
    package.load(finished, "cpu").save(tmp_path / "model")
    assert dcdc("predict", "model", tiny_file) == dcdc("predict", finished, tiny_file)
    (tmp_path / "model" / "config.json").write_text('{"format": 3}')
    code, out, err = dcdc("predict", "model", tiny_file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "this dcdc reads format 2" in err

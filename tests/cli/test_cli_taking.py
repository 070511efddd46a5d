"""What `dcdc fit` leaves at once, `dcdc export` leaves of a finished run."""

import pytest
from PIL import Image


@pytest.fixture
def photos(tmp_path, tiny_set):
    folder = tmp_path / "photos"
    folder.mkdir()
    for index, pixels in enumerate(tiny_set.images):
        Image.fromarray(pixels[..., 0]).save(folder / f"{index:02}.png")
    return folder


def test_answers_by_fit_and_by_export(dcdc, photos, tiny_flags, tiny_set, tmp_path):
    n = tiny_set.n_images
    flags = (*tiny_flags, "--no-report", "--quiet")
    code, out, err = dcdc("fit", photos, *flags, "--table", "t.jsonl", "--xmp", "xmp")
    assert (code, err) == (0, "")
    assert out.endswith(f"{n} rows: t.jsonl\n{n} sidecars written: xmp\n")
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == n
    code, _, err = dcdc("fit", photos, *flags, "--run", "other", "--table", "t.jsonl")
    assert (code, err) == (2, "dcdc: t.jsonl exists: choose another by --table\n")
    assert not (tmp_path / "other").exists()  # before any training

    code, out, err = dcdc(
        *("export", "runs/photos", "--table", "t.csv", "--copy-to", "sorted", "--xmp", "xmp"),
        *("--fiftyone", "labels.json", "--quiet"),
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{n} rows: t.csv",
        f"{n} images for FiftyOne: labels.json",
        "0 sidecars written: xmp",  # which are as they should be
        f"{n} files copied: sorted",
    ]
    assert not (tmp_path / "runs/photos/model.onnx").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--lightroom",), "--lightroom is for sidecars: say where by --xmp DIR"),
        (("--copy-to", "a", "--link-to", "b"), "exclude each other"),
        (("--table", "t.xlsx"), "--table t.xlsx must end in .csv, .parquet or .jsonl"),
        (("--fiftyone", "labels"), "--fiftyone labels must end in .json"),
        (("--xmp", "here"), "tiny.npz holds no image files: --copy-to, --link-to, --xmp and"),
    ],
)
def test_answers_that_cannot_be_written(dcdc, finished, flags, told):
    code, _, err = dcdc("export", finished, *flags)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err

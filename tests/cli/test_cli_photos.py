"""`dcdc fit photos/` as a person with a folder of photos meets it."""

import pytest
from PIL import Image


@pytest.fixture
def photos(tmp_path, tiny_set):
    """A flat folder, with things in it that are no images."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for index, pixels in enumerate(tiny_set.images):
        Image.fromarray(pixels[..., 0]).save(folder / f"{index:02}.png")
    for name in ("film.mp4", "shot.cr2", "notes.txt", "Thumbs.db", ".DS_Store"):
        (folder / name).write_bytes(b"x")
    return folder


LEFT_OUT = (
    "left out: 1 .cr2 (export them as JPEG), 1 .mp4 (take frames of them, by ffmpeg say), 1 file "
    "that is no image\n"
)


def test_what_is_left_out_is_told_once_even_in_quiet(dcdc, finished, photos, tiny_flags):
    for flags in ((), ("--quiet",)):
        run = ["--run", "new", "--overwrite", "--no-report"]
        code, _, err = dcdc("fit", photos, *tiny_flags, *run, *flags)
        assert code == 0
        assert err.count(LEFT_OUT) == 1
    code, _, err = dcdc("predict", finished, photos)
    assert code == 0
    assert err == LEFT_OUT

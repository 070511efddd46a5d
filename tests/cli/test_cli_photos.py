"""`dcdc fit photos/` as a person with a folder of photos meets it."""

import re

import numpy as np
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


def test_the_number_of_clusters_is_asked_for_before_anything_is_decoded(dcdc, photos, tmp_path):
    (photos / "damaged.png").write_bytes(b"no image")
    code, _, err = dcdc("fit", photos)
    assert (code, err) == (
        2,
        "dcdc: nothing says how many clusters to find: give --clusters auto where the images are "
        "to settle it, or --clusters 5 for a first look at 49 images\n",
    )
    code, _, err = dcdc("fit", photos, "--clusters", "many")
    assert (code, err) == (
        2,
        "dcdc: --clusters many is no number of clusters: give a whole number; a first guess is the "
        "square root of half as many as there are images, --clusters 13 for 338, --clusters "
        "auto or --clusters 5-40 where the images are to settle it, or --clusters classes where "
        "there are classes\n",
    )
    code, _, err = dcdc("fit", photos, "--clusters", "classes")
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "the images have no classes to count: give --clusters auto where the images are to" in err
    )
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def albums(photos):
    for index, file in enumerate(sorted(photos.glob("*.png"))):
        album = photos / ("2019 Iceland", "phone")[index % 2]
        album.mkdir(exist_ok=True)
        file.rename(album / file.name)
    return photos


@pytest.mark.parametrize("verb", ["fit", "compare"])
def test_sub_folders_do_not_say_how_many_clusters_there_are(dcdc, albums, verb):
    code, _, err = dcdc(verb, albums)
    settled = "--clusters auto where the images are to settle it, " if verb == "fit" else ""
    assert code == 2
    assert err.splitlines()[-1] == (
        f"dcdc: nothing says how many clusters to find: give {settled}--clusters 5 for a first "
        "look at 48 images, or --clusters classes for one for each of 2 sub-folders"
    )


def test_sub_folders_score_unless_that_is_undone(dcdc, albums, tiny_flags):
    run = ["--run", "new", "--overwrite", "--no-report"]
    code, out, err = dcdc("fit", albums, *tiny_flags, *run)
    assert code == 0
    told = "classes are its sub-folders (2019 Iceland, phone), for scores alone; else --target none"
    assert told in err.splitlines()
    assert "2 classes to score against, 3 clusters to find" in err
    assert "ACC" in out.splitlines()[0]
    code, out, err = dcdc("fit", albums, *tiny_flags, *run, "--target", "none")
    assert code == 0
    assert "sub-folders" not in err
    assert "no classes to score against, 3 clusters to find" in err
    assert "no targets" in out
    code, _, err = dcdc("fit", albums, *tiny_flags, *run, "--clusters", "classes")
    assert code == 0
    assert "2 clusters to find" in err


def drawn(text: str) -> list[str]:
    """Lines of bars as a terminal shows them, one after the other."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return [line for line in re.split(r"[\r\n]+", plain) if "━" in line]


def test_bar_count_and_time_left_are_never_cut(on_terminal, photos, tiny_flags, tmp_path):
    flags = (*tiny_flags, "--epochs", "12", "--run", tmp_path / "r", "--no-report")
    text = on_terminal("fit", photos, *flags, columns=80)
    lines = [line for line in drawn(text) if "epoch" in line]
    assert len(lines) >= 2
    for line in lines:
        assert re.match(r"epoch \d+/12 [━╸╺]{20} +\d+/\d+ \d:\d\d:\d\d", line), line
        assert len(line) <= 80
    assert any(re.search(r"(over|cluster)\.sample", line) for line in lines)
    assert re.search(r"\nthis takes about \d+ (s|min) here\r", text)


def test_the_images_settle_the_number(dcdc, tmp_path):
    random = np.random.default_rng(0)
    vectors = 6 * np.eye(4, 24)[np.arange(160) % 4] + random.normal(size=(160, 24))
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float32))
    code, _, err = dcdc("fit", "vectors.npy", "--clusters", "auto", "--no-report", "--epochs", 2)
    assert code == 0
    assert "comparing numbers of clusters: 8 of 8\n" in err
    assert "\n4 clusters, prediction strength 1.00 of 1" in err
    assert (tmp_path / "runs/vectors/number.json").exists()
    code, _, err = dcdc("compare", "digits", "--clusters", "5-9")
    assert (code, err) == (
        2,
        "dcdc: how many clusters there are is settled by `fit` in one process alone: give a whole "
        "number of clusters\n",
    )

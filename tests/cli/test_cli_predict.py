"""`dcdc predict` as a person meets it: what it prints, writes, refuses and goes on with."""

import csv
import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

COLUMNS = (
    "name,cluster,confidence,target,runner_up,runner_up_confidence,"
    "out_of_distribution,out_of_distribution_score"
)


@pytest.fixture
def photos(tmp_path, tiny_set):
    folder = tmp_path / "photos"
    for index, pixels in enumerate(tiny_set.images):
        kind = folder / f"kind-{tiny_set.targets[index]}"
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[..., 0]).save(kind / f"{index:02}.png")
    return folder


@pytest.fixture
def refused(dcdc):
    def call(*arguments: object) -> str:
        code, out, err = dcdc("predict", *arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("dcdc: ")
        assert err.count("\n") == 1
        return err

    return call


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_on_stdout_and_into_files_it_says_the_same(dcdc, finished, tiny_file, tmp_path):
    code, out, _ = dcdc("predict", finished, tiny_file)
    assert code == 0
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        code, said, err = dcdc("predict", finished, tiny_file, "--out", name)
        assert (code, err) == (0, "")
        assert said.startswith("48 images assigned")
        assert said.endswith(f": {name}\n")
    assert (tmp_path / "out.csv").read_text() == out
    assert out.splitlines()[0] == COLUMNS
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    trained = pq.read_table(finished / "assignments.parquet").to_pydict()
    for name in ("name", "cluster", "target", "runner_up"):
        assert table[name] == trained[name]
    assert table["out_of_distribution"] == [False] * 48
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["cluster"] for line in lines] == table["cluster"]


def test_one_image_and_several_are_answered_as_in_their_folder(dcdc, finished, photos):
    _, out, _ = dcdc("predict", finished, photos)
    known = {row["name"]: row["cluster"] for row in csv.DictReader(out.splitlines())}
    names = list(known)[:20:7]
    for some in (names[:1], names):
        code, out, err = dcdc("predict", finished, *(photos / name for name in some))
        assert (code, err) == (0, "")
        rows = list(csv.DictReader(out.splitlines()))
        assert [row["name"] for row in rows] == [str(photos / name) for name in some]
        assert [row["cluster"] for row in rows] == [known[name] for name in some]


def test_several_files_must_all_be_images(refused, finished, photos):
    image = next(photos.rglob("*.png"))
    assert f"{photos} is a folder: give it alone" in refused(finished, image, photos)
    said = refused(finished, image, "nowhere.png")
    assert "cannot read image nowhere.png in the files given: no such file" in said
    said = refused(finished, image, finished / "config.json")
    assert "config.json in the files given: not an image" in said
    assert "--target label has no meaning" in refused(finished, image, "--target", "label")


def test_features_line_up_with_the_rows(dcdc, finished, tiny_file, tmp_path):
    code, out, _ = dcdc("predict", finished, tiny_file, "--out", "o.csv", "--features", "f/f.npy")
    assert code == 0
    assert "features: f/f.npy" in out
    assert np.load(tmp_path / "f" / "f.npy").shape == (48, 256)


def test_files_are_sorted_by_clusters_and_their_names(dcdc, finished, photos, tmp_path):
    (finished / "names.json").write_text('{"format": 1, "clusters": {"0": "stripes/across"}}')
    code, out, err = dcdc(
        "predict", finished, photos, "--out", "out.csv", "--copy-to", "sorted", "--quiet"
    )
    assert (code, err) == (0, "")
    assert "48 files copied: sorted" in out
    rows = read_csv(tmp_path / "out.csv")
    for row in rows:
        folder = "stripes_across" if row["cluster"] == "0" else f"cluster-0{row['cluster']}"
        copy = tmp_path / "sorted" / folder / row["name"].replace("/", "_")
        assert copy.read_bytes() == (photos / row["name"]).read_bytes()
    assert len([path for path in (tmp_path / "sorted").rglob("*") if path.is_file()]) == 48
    code, out, _ = dcdc("predict", finished, photos, "--out", "2.csv", "--link-to", "linked")
    assert "48 files linked: linked" in out
    assert all(path.is_symlink() for path in (tmp_path / "linked").rglob("*.png"))
    code, out, _ = dcdc("predict", finished, photos, "--out", "3.csv", "--copy-to", "sorted")
    assert "0 files copied, 48 there already: sorted" in out


def test_images_of_another_size_or_mode_are_brought_to_the_models(dcdc, finished, tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "mixed").mkdir()
    for name, shape in (("a.png", (30, 20, 3)), ("b.png", (8, 8)), ("c.png", (9, 9, 4))):
        Image.fromarray(random.integers(0, 256, shape, np.uint8)).save(tmp_path / "mixed" / name)
    code, out, err = dcdc("predict", finished, "mixed")
    assert code == 0
    assert len(out.splitlines()) == 4
    assert err == "some images are in colour, the model sees them in grey, as it was trained\n"
    assert dcdc("predict", finished, "mixed", "--quiet")[2] == ""


def test_bad_images_are_refused_or_listed(dcdc, refused, finished, photos, tmp_path):
    (photos / "kind-1" / "01.png").write_bytes(b"torn")
    assert "kind-1/01.png" in refused(finished, photos, "--out", "out.csv")
    assert not list(tmp_path.glob("out*"))
    code, out, err = dcdc("predict", finished, photos, "--out", "out.csv", "--on-bad", "skip")
    assert code == 0
    assert "skipped kind-1/01.png: " in err
    assert "1 image skipped: out.skipped.csv" in out
    assert [row["name"] for row in read_csv(tmp_path / "out.skipped.csv")] == ["kind-1/01.png"]
    code, out, err = dcdc("predict", finished, photos, "--on-bad", "skip")
    assert (code, len(out.splitlines())) == (0, 48)
    assert "skipped kind-1/01.png: " in err


def test_an_older_model_says_once_that_it_cannot_tell_what_is_out_of_distribution(
    dcdc, finished, tiny_file, tmp_path
):
    (finished / "sample.npz").unlink()
    code, _, err = dcdc("predict", finished, tiny_file, "--out", "out.csv")
    assert code == 0
    assert err.count("out of distribution") == 1
    assert all(
        row["out_of_distribution"] == row["out_of_distribution_score"] == ""
        for row in read_csv(tmp_path / "out.csv")
    )
    (finished / "sample.npz").write_bytes(b"torn")
    code, _, err = dcdc("predict", finished, tiny_file, "--out", "2.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "sample.npz is damaged" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--out", "o.xls"), "must end in .csv, .parquet or .jsonl"),
        (("--out", "o.csv", "--features", "f.txt"), "--features f.txt must end in .npy"),
        (("--features", "f.npy"), "--features needs a table of the rows: say where by --out FILE"),
        (("--copy-to", "d"), "--copy-to needs a table"),
        (("--link-to", "d"), "--link-to needs a table"),
        (("--out", "o.csv", "--link-to", "d", "--copy-to", "d"), "exclude each other"),
        (("--out", "there.csv"), "there.csv exists: choose another --out"),
        (("--out", "o.csv", "--features", "there.npy"), "there.npy exists"),
        (("--out", "there.csv/o.csv"), "cannot write there.csv/o.csv: Not a directory"),
        (
            ("--out", "o.csv", "--features", "there.csv/f.npy"),
            "there.csv is a file: give a folder",
        ),
        (("--out", "/proc/o.csv"), "cannot write /proc/o.csv: No such file or directory"),
        (("--out", "o.csv", "--copy-to", "d"), "tiny.npz holds no image files to sort"),
        (("--out", "o.csv", "--on-bad", "ignore"), "give 'refuse' or 'skip'"),
        (("--on-bad", "ignore"), "give 'refuse' or 'skip'"),
    ],
)
def test_what_cannot_be_done_is_one_line(refused, finished, tiny_file, tmp_path, flags, message):
    for name in ("there.csv", "there.npy"):
        (tmp_path / name).write_text("mine")
    before = set(tmp_path.iterdir())
    assert message in refused(finished, tiny_file, *flags)
    assert set(tmp_path.iterdir()) == before
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_place_for_sorted_files_that_cannot_be_written_is_one_line(
    dcdc, refused, finished, photos, tmp_path
):
    (tmp_path / "file").write_text("mine")
    assert "file is a file" in refused(finished, photos, "--out", "out.csv", "--copy-to", "file")
    line = refused(finished, photos, "--out", "out.csv", "--copy-to", "file/sorted")
    assert "Not a directory" in line
    assert {path.name for path in tmp_path.iterdir()} == {"file", "photos", "runs"}
    code, out, _ = dcdc("predict", finished, photos, "--out", "out.csv", "--copy-to", "sorted")
    assert (code, "48 files copied" in out) == (0, True)


def test_arrays_of_other_channels_are_one_line(refused, finished, tmp_path):
    np.save(tmp_path / "colour.npy", np.zeros((3, 8, 8, 3), np.uint8))
    assert "trained on images of 1 channel(s), those of colour.npy have 3" in refused(
        finished, "colour.npy"
    )


def test_a_model_of_another_format_or_shape_is_one_line(refused, finished, tiny_file):
    config = json.loads((finished / "config.json").read_text())
    (finished / "config.json").write_text(json.dumps({**config, "format": 99}))
    assert "has format 99, this dcdc reads format 2" in refused(finished, tiny_file)
    (finished / "config.json").write_text(json.dumps({**config, "n_clusters": 4}))
    assert "config.json has n_clusters = 4, its model was trained with 3" in refused(
        finished, tiny_file
    )


def test_work_of_another_model_is_one_line_that_says_how_to_go_on(
    dcdc, refused, finished, tiny_file, tmp_path
):
    work = tmp_path / "out.csv.partial"
    work.mkdir()
    header = {"format": 1, "meaning": {}, "parts": ["clusters", "rows"]}
    (work / "journal").write_text(json.dumps(header) + "\n")
    line = refused(finished, tiny_file, "--out", "out.csv")
    assert "out.csv.partial holds rows of an earlier start with another model" in line
    assert "remove the folder to start afresh, or choose another --out" in line
    (work / "journal").unlink()
    assert dcdc("predict", finished, tiny_file, "--out", "out.csv")[0] == 0


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_with_a_rate(on_terminal, finished, photos, tmp_path):
    text = on_terminal("predict", finished, photos, "--out", tmp_path / "out.csv")
    for wanted in ("predicting", "48/48", "images/s"):
        assert wanted in text, wanted


def test_a_reader_that_goes_ends_it_quietly(finished, tmp_path):
    """As `| head` does; far more rows than a pipe holds."""
    np.save(tmp_path / "many.npy", np.zeros((6_000, 8, 8), np.uint8))
    process = subprocess.Popen(
        [sys.executable, "-m", "dcdc", "predict", finished, tmp_path / "many.npy", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline().startswith(b"name,cluster")
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0

"""`dcdc data` in this process: what it prints, gets, removes and returns."""

import hashlib
import http.server
import os
import pty
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial

import filelock
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dcdc.data.benchmarks import catalogue, download
from dcdc.data.benchmarks.catalogue import BENCHMARKS, RemoteFile, folder_of

CONTENTS = bytes(range(250)) * 2_000


@pytest.fixture
def data(dcdc, monkeypatch, tmp_path):
    """Runs a command below `dcdc data`, with a cache of its own: exit code, stdout, stderr."""
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    return partial(dcdc, "data")


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A benchmark of one file, on a server of this machine; its name is mnist."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "tiny.gz").write_bytes(CONTENTS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(site))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/tiny.gz"
    file = RemoteFile(url, "tiny.gz", hashlib.md5(CONTENTS).hexdigest(), len(CONTENTS))
    monkeypatch.setitem(catalogue.BENCHMARKS, "mnist", replace(BENCHMARKS["mnist"], files=(file,)))
    monkeypatch.setenv("no_proxy", "*")
    yield site / "tiny.gz"
    server.shutdown()
    server.server_close()
    thread.join()


def row(out, name):
    return next(line.split() for line in out.splitlines() if line.split()[0] == name)


@pytest.mark.usefixtures("tiny")
def test_list_has_every_benchmark_and_says_what_is_here(data):
    code, out, err = data("list")
    assert (code, err) == (0, "")
    assert row(out, "digits") == ["digits", "1,797", "10", "8", "built", "in"]
    assert row(out, "stl10") == ["stl10", "13,000", "10", "96", "2.6", "GB", "to", "get"]
    assert row(out, "imagenet-dogs")[-2:] == ["by", "hand"]
    assert len(out.splitlines()) == 2 + len(BENCHMARKS)
    assert "\x1b" not in out
    assert row(out, "mnist")[-4:] == ["500.0", "kB", "to", "get"]
    data("get", "mnist")
    _, out, _ = data("list")
    assert row(out, "mnist")[-1] == "here"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "stl10",
            [
                "train 5,000, test 8,000, unlabeled 100,000",
                "both heads on train + test (13,000 images)",
                "over-clustering head on unlabeled too",
                "train + test, against the 10 classes",
                "dcdc data get stl10",
                "http://ai.stanford.edu",
                "Coates",
                "dcdc fit stl10 --preset stl10-paper",
            ],
        ),
        ("cifar100-20", ["20 super-classes", "cifar100-20-paper"]),
        ("mnist", ["the paper does not use it", "try        dcdc fit mnist"]),
        ("imagenet-10", ["named `train`", "imagenet-10:/path/to/imagenet", "image-net.org"]),
        ("digits", ["come with scikit-learn", "dcdc fit digits"]),
    ],
)
def test_info(data, name, wanted):
    code, out, err = data("info", name)
    assert (code, err) == (0, "")
    for words in wanted:
        assert words in out or words in " ".join(out.split())


@pytest.fixture
def photos(tmp_path):
    """Two classes of colour and grey, a duplicate, and a file that is no image."""
    random = np.random.default_rng(0)
    for number in range(8):
        folder = tmp_path / "photos" / ("cats" if number % 2 else "dogs")
        folder.mkdir(parents=True, exist_ok=True)
        shape = (30 + number, 40, 3) if number < 6 else (30, 40)
        pixels = random.integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{'png' if number < 5 else 'bmp'}")
    shutil.copy(tmp_path / "photos/dogs/0.png", tmp_path / "photos/cats/again.png")
    (tmp_path / "photos/cats/torn.jpg").write_bytes(b"no image")
    return tmp_path / "photos"


def test_info_of_a_folder(data, photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    code, out, err = data("info", "photos")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "photos: 10 images",
        "formats    PNG 6, BMP 3",
        "sizes      40 x 30 to 40 x 35 pixels, the median 40 x 31 (width x height)",
        "colours    7 in colour, 2 grey",
        "classes    2: cats 6, dogs 4",
        "duplicates 1 has the content of another",
        "           dogs/0.png is cats/again.png",
        "unreadable 1: repair or remove them, or use --on-bad skip",
        "           cats/torn.jpg: not an image in a format that is read here, or damaged",
        "try        dcdc fit photos --clusters 2",
    ]


def test_info_of_arrays_vectors_and_parquet(data, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images = np.arange(5 * 64, dtype=np.uint8).reshape(5, 8, 8)  # the values of two repeat
    np.savez("a.npz", images=images, y=["u", "u", "v", "u", "w"])
    _, out, _ = data("info", "a.npz")
    assert "a.npz: 5 images\nshape      8 x 8 x 1\nclasses    3: u 3, v 1, w 1\n" in out
    assert "           image-0004 is image-0000" in out
    np.save("v.npy", np.random.default_rng(0).normal(size=(9, 4)))
    _, out, _ = data("info", "v.npy")
    assert "v.npy: 9 feature vectors\nshape      4\n" in out
    assert "duplicates none" in out
    content = (photos / "dogs/0.png").read_bytes()
    pq.write_table(pa.table({"image": [content] * 3, "kind": [0, 1, 1]}), "p.parquet")
    _, out, _ = data("info", "p.parquet", "--target", "kind")
    assert "p.parquet: 3 images\nformats    PNG 3\n" in out
    assert "classes    2: 1 2, 0 1" in out
    assert "duplicates 2 have the content of another" in out


def test_info_stays_within_80_columns_and_names_a_few(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(30):
        folder = tmp_path / "many" / f"{'a-long-name-of-a-class' * 2}-{number}"
        folder.mkdir(parents=True)
        (folder / f"{'long' * 20}.png").write_bytes(bytes(number))
        Image.new("L", (4, 4)).save(folder / "good.png")
    code, out, _ = data("info", "many")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "and 24 others" in out
    assert out.count("good.png is ") == 3
    assert "and 26 others" in out


def test_info_of_nothing_is_one_line(data):
    code, out, err = data("info", "mnst")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "data source 'mnst' does not exist" in err
    assert "did you mean 'mnist'?" in err


@pytest.mark.usefixtures("tiny")
def test_info_says_where_the_files_are(data):
    data("get", "mnist")
    _, out, _ = data("info", "mnist")
    assert f"here, in {folder_of(BENCHMARKS['mnist'])}" in out
    assert "to get" not in out


@pytest.mark.usefixtures("tiny")
def test_get_says_where_it_is_and_is_content_with_what_is_there(data):
    code, out, err = data("get", "mnist", "digits", "mnist")
    folder = folder_of(BENCHMARKS["mnist"])
    assert code == 0, err
    assert out.splitlines() == [
        "digits comes with scikit-learn: nothing to get",
        f"mnist is here: {folder}",
    ]
    assert (folder / "tiny.gz").read_bytes() == CONTENTS
    assert 2 <= len(err.splitlines()) <= 5
    assert err.splitlines()[-1] == "tiny.gz: 500.0 kB of 500.0 kB"
    assert "\x1b" not in err
    code, out, err = data("get", "mnist")
    assert (code, out, err) == (0, f"mnist is here already: {folder}\n", "")


def test_get_of_wrong_bytes(data, tiny):
    tiny.write_bytes(CONTENTS[:-1])
    code, out, err = data("get", "mnist")
    assert (code, out) == (2, "")
    assert "md5" in err.splitlines()[-1]
    tiny.write_bytes(CONTENTS)
    assert data("get", "mnist")[0] == 0


@pytest.mark.usefixtures("tiny")
def test_get_interrupted_by_ctrl_c_can_be_gone_on_with(data, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(download, "_fill", interrupted)
        code, _, err = data("get", "mnist")
    assert code == 130
    assert "dcdc data get mnist" in err
    assert data("get", "mnist")[0] == 0


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["imagenet-10"], "n02056570/*.JPEG"),
        (["mnist", "imagenet-dogs"], "imagenet-dogs is not here"),
        (["mnist", "cifar"], "did you mean 'cifar10'"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_what_cannot_be_got_is_said_in_one_line_before_anything_is(data, names, wanted):
    code, out, err = data("get", *names)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert wanted in err


@pytest.mark.usefixtures("tiny")
def test_on_a_terminal_there_is_a_bar(tmp_path):
    """A real pseudo-terminal, as a person has it."""
    program = (
        "import sys; from dataclasses import replace\n"
        "from dcdc.cli.data import data_app; from dcdc.data.benchmarks.catalogue import *\n"
        "known = BENCHMARKS['mnist']\n"
        f"BENCHMARKS['mnist'] = replace(known, files=({BENCHMARKS['mnist'].files[0]!r},))\n"
        "data_app(['get', 'mnist'])"
    )
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200", "DCDC_DATA": str(tmp_path / "c")}
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stderr=writer,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    os.close(writer)
    shown = b""
    try:
        while piece := os.read(reader, 65536):
            shown += piece
    except OSError:
        pass
    os.close(reader)
    said = process.communicate()[0]
    assert said == f"mnist is here: {tmp_path / 'c' / 'downloads' / 'mnist'}\n", shown
    assert b"tiny.gz" in shown
    assert b"500.0/500.0 kB" in shown


def rows(folder, n_bytes=1_000):
    folder.mkdir(parents=True)
    for name in ("rows", "journal", "done"):
        (folder / name).write_bytes(bytes(n_bytes))
    folder.with_suffix(".lock").touch()
    folder.with_suffix(".note").touch()
    return folder


@pytest.mark.usefixtures("tiny")
def test_cache_shows_how_much_there_is(data, tmp_path):
    code, out, err = data("cache")
    assert (code, err) == (0, "")
    assert str(tmp_path / "cache") in out
    assert "downloads    0 bytes" in out
    assert not (tmp_path / "cache").exists()
    data("get", "mnist")
    rows(tmp_path / "cache" / "decoded" / "abc")
    _, out, _ = data("cache")
    assert "downloads    500.0 kB" in out
    assert "decoded      3.0 kB" in out


@pytest.mark.usefixtures("tiny")
def test_clear_removes_decoded_images_that_nobody_is_making_alone(data, tmp_path):
    data("get", "mnist")
    decoded = tmp_path / "cache" / "decoded"
    finished, in_use = rows(decoded / "finished"), rows(decoded / "in-use")
    rows(decoded / "killed").joinpath(".journal.123.partial").touch()
    with filelock.FileLock(in_use.with_suffix(".lock")):
        code, out, err = data("cache", "--clear")
    assert code == 0
    assert err == "left in-use: in use\n"
    assert "removed 6.0 kB" in out
    assert not finished.exists()
    assert not (decoded / "killed").exists()
    assert not (decoded / "finished.note").exists()
    assert (in_use / "rows").stat().st_size == 1_000
    assert (folder_of(BENCHMARKS["mnist"]) / "tiny.gz").exists()
    assert data("cache", "--clear")[2] == ""
    assert not in_use.exists()


def test_clear_leaves_what_is_not_ours(data, tmp_path):
    """A DCDC_DATA that names the wrong folder, or a link that leads out of it."""
    decoded, elsewhere = tmp_path / "cache" / "decoded", rows(tmp_path / "elsewhere")
    photos = rows(decoded / "photos") / "holiday.jpg"
    photos.touch()
    (decoded / "letter.txt").touch()
    (decoded / "link").symlink_to(elsewhere)
    code, _, err = data("cache", "--clear")
    assert code == 0
    for name in ("photos", "letter.txt", "link"):
        assert f"left {name}: not made by dcdc" in err
    assert photos.exists()
    assert (photos.parent / "rows").exists()
    assert (decoded / "letter.txt").exists()
    assert (elsewhere / "rows").exists()


def test_help_needs_no_heavy_import():
    program = (
        "import sys, dcdc.cli.data\n"
        "heavy = {'torch', 'numpy', 'rich.progress', 'requests', 'filelock', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

"""Sources that would hang, abort or print: each is one line."""

import io
import os
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dcdc.data import load_data, load_images
from dcdc.data.image_stream import open_stream
from dcdc.errors import InputError


def png() -> bytes:
    content = io.BytesIO()
    Image.new("L", (8, 8), 7).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        *("a.parquet", "a.npy", "a.npz", "a.csv", "a.tsv", "a.txt", "a.safetensors", "a.zip"),
        *("folder/a.parquet", "folder/a.png", "folder/data_batch_1", "folder/data_batch_1.bin"),
        *("folder/train-images-idx3-ubyte", "folder/train_X.bin", "folder/wnids.txt"),
    ],
)
def test_a_pipe_is_never_waited_for(name, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / name)
    source = tmp_path / name.partition("/")[0]
    for read in (load_data, lambda where: open_stream(where, size=8, channels=1)):
        with pytest.raises(InputError):
            images = read(source)
            list(images.blocks(0, 1))  # a stream opens images as they are asked for
            raise InputError(str([each.skipped for each in images.blocks(0, 1)]))


def test_a_name_without_a_home(monkeypatch):
    for source in ("cifar10:~nosuchuser/x", "~nosuchuser/x"):
        with pytest.raises(InputError, match="~nosuchuser"):
            load_images(source)
    monkeypatch.setenv("DCDC_DATA", "~nosuchuser/x")
    with pytest.raises(InputError, match="no home folder"):
        load_images("cifar10")


def test_two_columns_of_one_name(tmp_path):
    twins = tmp_path / "twins.parquet"
    columns = [pa.array([png()] * 4), pa.array([1, 2] * 2), pa.array([1, 1] * 2)]
    pq.write_table(pa.Table.from_arrays(columns, names=["image", "label", "label"]), twins)
    with pytest.raises(InputError, match=r"several columns called 'label'"):
        load_data(twins)
    for name, header in (("paths.csv", "path,label,label"), ("rows.csv", "f0,f0,label")):
        (tmp_path / name).write_text(f"{header}\n1,2,3\n4,5,6\n")
        with pytest.raises(InputError, match=r"several columns called"):
            load_data(tmp_path / name)


def test_a_label_that_cannot_be_written(tmp_path):
    file = tmp_path / "half.npz"
    images = np.zeros((4, 8, 8), np.uint8)
    np.savez(file, images=images, targets=np.array(["cat", "dog\ud800"] * 2))
    with pytest.raises(InputError, match=r"'dog\\ud800' at position 1"):
        load_data(file)


def test_libtiff_says_nothing_of_its_own(tmp_path):
    content = io.BytesIO()
    Image.effect_noise((32, 32), 50).save(content, "TIFF", compression="tiff_lzw")
    draw = random.Random(0)
    for number in range(40):
        damaged = bytearray(content.getvalue())
        for _ in range(3):
            damaged[draw.randrange(8, len(damaged))] = draw.randrange(256)
        (tmp_path / f"{number}.tif").write_bytes(damaged)
    script = f"""
from dcdc.data import load_images
found = load_images({str(tmp_path)!r}, size=8, on_bad="skip")
print(len(found.skipped))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ["images", "vectors"])
def test_a_file_that_is_cut_while_it_is_mapped_is_one_line(kind, tmp_path):
    """In a process of its own: the kernel's answer to reading a lost page is SIGBUS."""
    shape, dtype = ((9000, 96, 96), np.uint8) if kind == "images" else ((40_000, 512), np.float32)
    file = tmp_path / "big.npy"
    mapped = np.lib.format.open_memmap(file, "w+", dtype, shape)
    mapped[::100] = 7
    del mapped
    script = f"""
import os
from dcdc.data.image_stream import open_stream
from dcdc.data.image_stream import open_vector_stream
from dcdc.errors import InputError
file = {str(file)!r}
if {kind == "images"}:
    stream = open_stream(file, size=96, channels=1)
else:
    stream = open_vector_stream(file, n_features=512)
blocks = stream.read(0, 100)
next(blocks)
os.truncate(file, 2**20)
try:
    list(blocks)
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "was cut short while it was in use" in done.stdout, (done.returncode, done.stderr)


def test_a_header_that_is_no_python_at_all_is_one_line(tmp_path):
    """numpy hands such a header to Python's tokenizer, whose errors are of a kind of their own."""
    path = tmp_path / "v.npy"
    np.save(path, np.zeros((4, 4)))
    content = bytearray(path.read_bytes())
    content[28:92] = bytes(64)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"v\.npy"):
        load_data(str(path))

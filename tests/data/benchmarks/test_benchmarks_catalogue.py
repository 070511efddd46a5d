import gzip
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dcdc.data.benchmarks.catalogue import (
    BENCHMARKS,
    benchmark,
    folder_of,
    how_to_place,
    is_here,
)
from dcdc.data.benchmarks.idx import FASHION_CLASSES
from dcdc.data.benchmarks.imagenet import IMAGENET_10, IMAGENET_DOGS
from dcdc.errors import InputError
from dcdc.prepare.presets import PRESETS

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("name", "n_images", "n_classes", "side", "extra", "preset"),
    [
        ("cifar10", 60_000, 10, 32, 0, "cifar10-paper"),
        ("cifar100", 60_000, 100, 32, 0, None),
        ("cifar100-20", 60_000, 20, 32, 0, "cifar100-20-paper"),
        ("stl10", 13_000, 10, 96, 100_000, "stl10-paper"),
        ("tiny-imagenet", 100_000, 200, 64, 0, "tiny-imagenet-paper"),
        ("imagenet-10", 13_000, 10, 96, 0, "imagenet-10-paper"),
        ("imagenet-dogs", 19_500, 15, 96, 0, "imagenet-dogs-paper"),
        ("mnist", 70_000, 10, 28, 0, None),
        ("fashion-mnist", 70_000, 10, 28, 0, None),
    ],
)
def test_the_protocol_of_the_paper(name, n_images, n_classes, side, extra, preset):
    known = BENCHMARKS[name]
    assert known.name == name
    assert (known.n_images, known.n_classes, known.side) == (n_images, n_classes, side)
    assert sum(known.splits[split] for split in known.extra) == extra
    assert known.paper_preset == preset
    if preset is not None:
        assert PRESETS[preset].n_clusters == n_classes


def test_the_table_above_is_whole_and_every_preset_of_the_paper_has_its_benchmark():
    assert len(BENCHMARKS) == 9
    presets = {known.paper_preset for known in BENCHMARKS.values()} - {None}
    assert presets == {name for name in PRESETS if name.endswith("-paper")}


def test_every_benchmark_can_be_had_one_way():
    for known in BENCHMARKS.values():
        assert bool(known.files) != bool(known.by_hand)
        assert bool(known.by_hand) == bool(known.by_hand_folders)
        for file in known.files:
            assert file.url.endswith(f"/{file.name}")
            assert re.fullmatch("[0-9a-f]{32}", file.md5)
            assert file.n_bytes > 1_000
            assert bool(file.unpacks_to) == file.name.endswith((".tar.gz", ".zip"))
            assert (file.unpacked_bytes > file.n_bytes) == bool(file.unpacks_to)
        for line in (known.targets, known.citation, known.licence, how_to_place(known)):
            assert line
            assert "\n" not in line


def test_those_who_share_a_folder_share_its_files(cache):
    assert folder_of(benchmark("cifar10")) == cache / "downloads" / "cifar10"
    assert folder_of(benchmark("cifar100")) == folder_of(benchmark("cifar100-20"))
    assert BENCHMARKS["cifar100"].files == BENCHMARKS["cifar100-20"].files
    assert folder_of(benchmark("imagenet-10")) == folder_of(benchmark("imagenet-dogs"))
    folders = {known.folder for known in BENCHMARKS.values()}
    assert len(folders) == len(BENCHMARKS) - 2


@pytest.mark.parametrize(
    ("name", "meant"), [("cifar-10", "cifar10"), ("MNIST", "mnist"), ("tiny_imagenet", "tiny-i")]
)
def test_a_mistyped_name(name, meant):
    with pytest.raises(InputError, match=f"'{name}'; did you mean '{meant}") as caught:
        benchmark(name)
    assert "fashion-mnist" in str(caught.value)


def test_a_name_like_no_other():
    with pytest.raises(InputError, match="unknown benchmark 'xyz'") as caught:
        benchmark("xyz")
    assert "did you mean" not in str(caught.value)


def test_imagenet_is_here_with_all_the_classes_that_are_needed(tmp_path):
    ten, dogs = benchmark("imagenet-10"), benchmark("imagenet-dogs")
    elsewhere = tmp_path / "imagenet" / "train"
    for wnid in IMAGENET_10:
        assert not is_here(ten)
        (elsewhere / wnid).mkdir(parents=True)
        folder_of(ten).mkdir(parents=True, exist_ok=True)
        if not (folder_of(ten) / "train").exists():
            (folder_of(ten) / "train").symlink_to(elsewhere)
    assert is_here(ten)
    assert not is_here(dogs)


def test_plain_files_are_here_with_their_sizes():
    mnist = benchmark("mnist")
    mnist = replace(mnist, files=tuple(replace(file, n_bytes=3) for file in mnist.files))
    folder_of(mnist).mkdir(parents=True)
    for file in mnist.files:
        (folder_of(mnist) / file.name).write_bytes(b"12")
    assert not is_here(mnist)
    for file in mnist.files:
        assert not is_here(mnist)
        (folder_of(mnist) / file.name).write_bytes(b"123")
    assert is_here(mnist)


def write_cifar10(folder):
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for label, name in enumerate(names):
        (folder / name).write_bytes(bytes([label]) + RANDOM.bytes(3072))


def write_cifar100(folder):
    for label, name in enumerate(("train.bin", "test.bin"), 18):
        (folder / name).write_bytes(bytes([label, 5 * label]) + RANDOM.bytes(3072))


def write_stl10(folder):
    for split in ("train", "test", "unlabeled"):
        (folder / f"{split}_X.bin").write_bytes(RANDOM.bytes(3 * 96 * 96))
        (folder / f"{split}_y.bin").write_bytes(b"\x03")


def write_idx(folder):
    for stem in ("train", "t10k"):
        images = struct.pack(">4i", 0x803, 2, 28, 28) + RANDOM.bytes(2 * 28 * 28)
        labels = struct.pack(">2i", 0x801, 2) + b"\x04\x09"
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{stem}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))


def write_image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 64)).save(path, "JPEG")


def write_tiny_imagenet(folder):
    (folder / "wnids.txt").write_text("n2\nn1\n")
    (folder / "words.txt").write_text("n1\tone\nn2\ttwo\n")
    for wnid in ("n1", "n2"):
        write_image(folder / "train" / wnid / "images" / f"{wnid}_0.JPEG")


def write_imagenet(folder):
    for wnid in IMAGENET_10 | IMAGENET_DOGS:
        write_image(folder / "train" / wnid / f"{wnid}_1.JPEG")


@pytest.mark.parametrize(
    ("name", "write", "targets", "named"),
    [
        ("cifar10", write_cifar10, [0, 1, 2, 3, 4, 5], "airplane"),
        ("cifar100", write_cifar100, [90, 95], "apple"),
        ("cifar100-20", write_cifar100, [18, 19], "aquatic_mammals"),
        ("stl10", write_stl10, [2, 2], "airplane"),
        ("mnist", write_idx, [4, 9, 4, 9], "0"),
        ("fashion-mnist", write_idx, [4, 9, 4, 9], FASHION_CLASSES[0]),
        ("tiny-imagenet", write_tiny_imagenet, [0, 1], "two"),
        ("imagenet-10", write_imagenet, list(range(10)), "king penguin"),
        ("imagenet-dogs", write_imagenet, list(range(15)), "Maltese dog"),
    ],
)
def test_each_is_read_as_its_protocol_says(tmp_path, name, write, targets, named):
    write(tmp_path)
    known = benchmark(name)
    found = known.load(tmp_path, known.answered, known.extra, 16)
    assert len(found.names) == len(targets)
    assert found.targets.tolist() == targets
    assert found.class_names[0] == named
    if name != "tiny-imagenet":
        assert len(found.class_names) == known.n_classes
    if hasattr(found, "images"):
        assert found.side == 16
        assert (found.extra is not None) == bool(known.extra)
        assert known.load(tmp_path, known.answered, known.extra, None).side == known.side


def test_splits_that_a_benchmark_does_not_have(tmp_path):
    write_cifar10(tmp_path)
    with pytest.raises(InputError, match="extra splits unlabeled"):
        benchmark("cifar10").load(tmp_path, ("train",), ("unlabeled",), None)
    with pytest.raises(InputError, match="splits val"):
        benchmark("imagenet-10").load(tmp_path, ("val",), (), None)

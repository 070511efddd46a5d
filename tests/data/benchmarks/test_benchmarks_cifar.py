import os
import pickle
import struct

import numpy as np
import pytest

from dcdc.data.benchmarks.cifar import (
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_COARSE_CLASSES,
    load_cifar10,
    load_cifar100,
)
from dcdc.errors import InputError

TRAIN = [f"data_batch_{number}" for number in range(1, 6)]
PER_BATCH = 3


def records(seed, n_images=PER_BATCH, n_classes=10):
    """Labels (N) and pixels as they lie in the files (N x 3072)."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, n_classes, n_images, np.uint8)
    return labels, draw.integers(0, 256, (n_images, 3072), np.uint8)


def pixels(rows):
    """The slow, obvious way from a file's row to an image."""
    images = np.empty((len(rows), 32, 32, 3), np.uint8)
    for image, row in zip(images, rows, strict=True):
        for y in range(32):
            for x in range(32):
                image[y, x] = [row[plane * 1024 + y * 32 + x] for plane in range(3)]
    return images


def python_2_batch(labels, rows, filenames):
    """Opcode by opcode what cPickle of Python 2 wrote, protocol 2."""
    short = [b"U" + bytes([len(name)]) + name for name in filenames]
    return (
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03"
        + b"U\x06labelsq\x04]q\x05("
        + b"".join(b"K" + bytes([label]) for label in labels)
        + b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08"
        + b"K\x00\x85U\x01b\x87Rq\x09(K\x01K" + bytes([len(rows)]) + b"M\x00\x0c\x86"
        + b"cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b"
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + b"T" + struct.pack("<i", rows.size) + rows.tobytes()
        + b"tbU\x09filenamesq\x0c]q\x0d(" + b"".join(short) + b"eu."
    )  # fmt: skip


def python_2_meta(names):
    listed = b"".join(b"S'%s'\np%d\na" % (name.encode(), 9 + i) for i, name in enumerate(names))
    return b"(dp1\nS'num_cases_per_batch'\np2\nI10000\nsS'label_names'\np3\n(lp4\n" + listed + b"s."


def write_binary(folder, start=0):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate([*TRAIN, "test_batch"], start):
        labels, rows = records(seed)
        np.hstack([labels[:, None], rows]).tofile(folder / f"{name}.bin")


def write_python(folder, start=0):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate([*TRAIN, "test_batch"], start):
        names = [b"%s_%d.png" % (name.encode(), index) for index in range(PER_BATCH)]
        (folder / name).write_bytes(python_2_batch(*records(seed), names))


def write_binary_100(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(["train.bin", "test.bin"]):
        (fine, rows), (coarse, _) = records(seed, n_classes=100), records(seed, n_classes=20)
        np.hstack([coarse[:, None], fine[:, None], rows]).tofile(folder / name)


def write_python_100(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(["train", "test"]):
        (fine, rows), (coarse, _) = records(seed, n_classes=100), records(seed, n_classes=20)
        content = {
            b"data": rows,
            b"fine_labels": fine.tolist(),
            b"coarse_labels": coarse.tolist(),
            b"filenames": [b"%d.png" % index for index in range(PER_BATCH)],
        }
        (folder / name).write_bytes(pickle.dumps(content, 2))


def refused(load, *arguments, **options):
    with pytest.raises(InputError) as caught:
        load(*arguments, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("subfolder", [None, "usual"])
@pytest.mark.parametrize(
    ("write", "usual"),
    [(write_binary, "cifar-10-batches-bin"), (write_python, "cifar-10-batches-py")],
)
def test_both_versions_of_cifar_10(tmp_path, write, usual, subfolder):
    write(tmp_path / usual if subfolder else tmp_path)
    found = load_cifar10(tmp_path, ("train", "test"))
    labels = np.concatenate([records(seed)[0] for seed in range(6)])
    assert found.targets.tolist() == labels.tolist()
    assert found.class_names == CIFAR10_CLASSES
    expected = pixels(np.concatenate([records(seed)[1] for seed in range(6)]))
    assert np.array_equal(found.images, expected)
    if write is write_binary:
        assert found.names[0] == "train/00000"
        assert found.names[-PER_BATCH - 1 : -PER_BATCH + 1] == ("train/00014", "test/00000")
    else:
        assert found.names[1] == "train/data_batch_1_1.png"
        assert found.names[-1] == "test/test_batch_2.png"


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("write", [write_binary_100, write_python_100])
def test_both_versions_and_grains_of_cifar_100(tmp_path, write, coarse):
    is_binary = write is write_binary_100
    write(tmp_path / ("cifar-100-binary" if is_binary else "cifar-100-python"))
    found = load_cifar100(tmp_path, ("train", "test"), coarse=coarse)
    n_classes = 20 if coarse else 100
    labels = np.concatenate([records(seed, n_classes=n_classes)[0] for seed in range(2)])
    assert found.targets.tolist() == labels.tolist()
    assert found.class_names == (CIFAR100_COARSE_CLASSES if coarse else CIFAR100_CLASSES)
    assert np.array_equal(found.images[:1], pixels(records(0, n_classes=100)[1][:1]))
    assert found.names[1] == ("train/00001" if is_binary else "train/1.png")


@pytest.mark.parametrize("write", [write_binary, write_python])
def test_splits_come_in_the_order_given(tmp_path, write):
    write(tmp_path)
    train, test = (load_cifar10(tmp_path, (split,)) for split in ("train", "test"))
    both = load_cifar10(tmp_path, ("test", "train"))
    assert np.array_equal(both.images, np.concatenate([test.images, train.images]))
    assert both.targets.tolist() == [*test.targets, *train.targets]
    assert both.names == (*test.names, *train.names)
    assert len(train.images) == 5 * PER_BATCH


def test_the_binary_version_is_taken_where_it_is_whole(tmp_path):
    write_binary(tmp_path / "cifar-10-batches-bin", start=50)
    write_python(tmp_path / "cifar-10-batches-py")
    assert load_cifar10(tmp_path, ("test",)).names[0] == "test/00000"
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    assert load_cifar10(tmp_path, ("test",)).names[0] == "test/00000"
    assert load_cifar10(tmp_path, ("train",)).names[0] == "train/data_batch_1_0.png"


def test_class_names_are_the_files_in_their_order(tmp_path):
    names = [f"z{9 - label}" for label in range(10)]
    write_binary(tmp_path / "bin")
    (tmp_path / "bin" / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    write_python(tmp_path / "py")
    (tmp_path / "py" / "batches.meta").write_bytes(python_2_meta(names))
    for folder in ("bin", "py"):
        found = load_cifar10(tmp_path / folder, ("test",))
        assert found.class_names == tuple(names)
        assert found.targets.tolist() == records(5)[0].tolist()


@pytest.mark.parametrize("coarse", [False, True])
def test_class_names_of_cifar_100(tmp_path, coarse):
    fine, wide = [f"f{99 - i}" for i in range(100)], [f"c{19 - i}" for i in range(20)]
    write_binary_100(tmp_path / "bin")
    (tmp_path / "bin" / "fine_label_names.txt").write_text("\n".join(fine))
    (tmp_path / "bin" / "coarse_label_names.txt").write_text("\n".join(wide))
    write_python_100(tmp_path / "py")
    meta = {b"fine_label_names": fine, b"coarse_label_names": [name.encode() for name in wide]}
    (tmp_path / "py" / "meta").write_bytes(pickle.dumps(meta, 4))
    for folder in ("bin", "py"):
        found = load_cifar100(tmp_path / folder, ("test",), coarse=coarse)
        assert found.class_names == tuple(wide if coarse else fine)


@pytest.mark.parametrize(
    ("names", "n_classes"),
    [(CIFAR10_CLASSES, 10), (CIFAR100_CLASSES, 100), (CIFAR100_COARSE_CLASSES, 20)],
)
def test_the_known_class_names_are_the_official_ones(names, n_classes):
    assert len(names) == n_classes
    assert list(names) == sorted(set(names))  # as it happens, the official order


def test_another_size(tmp_path):
    write_python(tmp_path)
    found = load_cifar10(tmp_path, ("test",), 16)
    assert found.image_shape == (16, 16, 3)
    whole = load_cifar10(tmp_path, ("test",)).images
    assert abs(float(found.images.mean()) - float(whole.mean())) < 2
    assert "size is 4" in refused(load_cifar10, tmp_path, ("test",), 4)


@pytest.mark.parametrize("splits", [(), ("val",), ("train", "train")])
def test_wrong_splits(tmp_path, splits):
    write_binary(tmp_path)
    message = refused(load_cifar10, tmp_path, splits)
    assert "CIFAR-10" in message
    assert "train" in message


@pytest.mark.parametrize(
    ("write", "load", "name"),
    [
        (write_binary, load_cifar10, "data_batch_4.bin"),
        (write_python, load_cifar10, "data_batch_4"),
        (write_binary_100, load_cifar100, "train.bin"),
        (write_python_100, load_cifar100, "train"),
    ],
)
class TestFaults:
    def test_a_missing_file(self, tmp_path, write, load, name):
        write(tmp_path)
        (tmp_path / name).unlink()
        message = refused(load, tmp_path, ("train", "test"))
        assert str(tmp_path) in message
        assert f"lacks {name} " in message
        assert "get it again" in message

    @pytest.mark.parametrize("left", [0, 0.5, 0.9999])
    def test_a_cut_file(self, tmp_path, write, load, name, left):
        write(tmp_path)
        os.truncate(tmp_path / name, int((tmp_path / name).stat().st_size * left))
        message = refused(load, tmp_path, ("train",))
        assert str(tmp_path / name) in message
        assert "get it again" in message


@pytest.mark.parametrize("n_bytes", [9214, 9220])  # whole, it has 9219
def test_a_file_of_another_length_says_what_was_expected(tmp_path, n_bytes):
    write_binary(tmp_path)
    os.truncate(tmp_path / "test_batch.bin", n_bytes)
    message = refused(load_cifar10, tmp_path, ("test",))
    assert f"{n_bytes} bytes" in message
    assert "3073" in message


def test_labels_out_of_range(tmp_path):
    labels, rows = records(0)
    labels[1] = 10
    np.hstack([labels[:, None], rows]).tofile(tmp_path / "test_batch.bin")
    message = refused(load_cifar10, tmp_path, ("test",))
    assert "test_batch.bin has the label 10, not one from 0 to 9" in message
    (tmp_path / "test_batch.bin").unlink()
    (tmp_path / "test_batch").write_bytes(python_2_batch(labels, rows, [b"a", b"b", b"c"]))
    assert "has the label 10" in refused(load_cifar10, tmp_path, ("test",))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"data": None}, "no images"),
        ({"data": np.zeros((3, 3072), np.int16)}, "no images"),
        ({"data": np.zeros((3, 1024), np.uint8)}, "(3, 1024)"),
        ({"labels": None}, "one label for each"),
        ({"labels": [1, 2]}, "one label for each"),
        ({"labels": [1, 2, -1]}, "label -1"),
        ({"labels": [1, 2, "3"]}, "label '3'"),
        ({"labels": [1, 2, 3.0]}, "label 3.0"),
        ({"filenames": [b"a"]}, "file name"),
        ({"filenames": [b"a", b"b", 3]}, "no text"),
    ],
)
def test_a_pickle_of_something_else(tmp_path, changes, named):
    labels, rows = records(0)
    content = {"data": rows, "labels": labels.tolist(), "filenames": ["a", "b", "c"]}
    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps(content, 2))
    found = load_cifar10(tmp_path, ("test",))  # with keys as Python 3 would write them
    assert (found.names, found.targets.tolist()) == (
        ("test/a", "test/b", "test/c"),
        labels.tolist(),
    )
    path.write_bytes(pickle.dumps({**content, **changes}, 2))
    message = refused(load_cifar10, tmp_path, ("test",))
    assert named in message
    assert str(path) in message


def test_a_pickle_without_names_or_dict(tmp_path):
    labels, rows = records(0)
    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps({b"data": rows, b"labels": labels}, 5))
    assert load_cifar10(tmp_path, ("test",)).names[2] == "test/00002"
    path.write_bytes(pickle.dumps([1], 2))
    assert "no dict" in refused(load_cifar10, tmp_path, ("test",))


def test_a_harmful_pickle_does_nothing(tmp_path):
    marker = tmp_path / "marker"
    write_python(tmp_path)
    attack = b"cos\nsystem\n(S'touch %s'\ntR." % str(marker).encode()
    for name in ("test_batch", "batches.meta"):
        (tmp_path / name).write_bytes(attack)
        message = refused(load_cifar10, tmp_path, ("test",))
        assert "os.system" in message
        assert name in message
        (tmp_path / name).unlink()
        write_python(tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize("content", [b"a\nb\n", b"\xff\xfe", b"a\n" * 10])
def test_damaged_class_names(tmp_path, content):
    write_binary(tmp_path)
    (tmp_path / "batches.meta.txt").write_bytes(content)
    message = refused(load_cifar10, tmp_path, ("test",))
    assert "batches.meta.txt" in message
    assert "get it again" in message


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    for folder in ("gone", "file"):
        assert "lacks test_batch.bin" in refused(load_cifar10, tmp_path / folder, ("test",))

import os

import numpy as np
import pytest

from dcdc.data.benchmarks.stl10 import STL10_CLASSES, load_stl10
from dcdc.errors import InputError

LABELS = {"train": [1, 10, 3, 3], "test": [7, 2]}
N_IMAGES = {"train": 4, "test": 2, "unlabeled": 3}


def pictures(split):
    """N x H x W x C, random but for a bar from top to bottom at the left edge of each."""
    seed = list(N_IMAGES).index(split)
    images = np.random.default_rng(seed).integers(0, 200, (N_IMAGES[split], 96, 96, 3), np.uint8)
    images[:, :, :5] = 255
    return images


@pytest.fixture
def folder(tmp_path):
    """As the original has it, byte by byte: planes, each column by column."""
    place = tmp_path / "stl10_binary"
    place.mkdir()
    for split in N_IMAGES:
        with (place / f"{split}_X.bin").open("wb") as file:
            for image in pictures(split):
                for plane in range(3):
                    for column in range(96):
                        file.write(image[:, column, plane].tobytes())
    for split, labels in LABELS.items():
        (place / f"{split}_y.bin").write_bytes(bytes(labels))
    (place / "class_names.txt").write_text("\n".join(STL10_CLASSES) + "\n")
    return tmp_path


def refused(*arguments, **options):
    with pytest.raises(InputError) as caught:
        load_stl10(*arguments, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_columns_become_rows_and_labels_start_at_0(folder):
    found = load_stl10(folder, ("train",))
    assert np.array_equal(found.images, pictures("train"))
    assert found.images[:, :, :5].min() == 255  # the bar stands; transposed it would lie
    assert found.targets.tolist() == [0, 9, 2, 2]
    assert found.class_names == STL10_CLASSES
    assert found.names == ("train/00000", "train/00001", "train/00002", "train/00003")
    assert found.extra is None


@pytest.mark.parametrize("splits", [("train", "test"), ("test", "train")])
def test_splits_come_in_the_order_given(folder, splits):
    found = load_stl10(folder / "stl10_binary", splits)
    expected = np.concatenate([pictures(split) for split in splits])
    assert np.array_equal(found.images, expected)
    assert found.targets.tolist() == [label - 1 for split in splits for label in LABELS[split]]
    assert found.names[0] == f"{splits[0]}/00000"
    assert found.names[-1].startswith(f"{splits[1]}/")


@pytest.mark.parametrize("size", [None, 96])
def test_extra_images_are_a_mapped_view(folder, size):
    found = load_stl10(folder, ("train", "test"), size, extra_splits=("unlabeled",))
    assert isinstance(found.extra, np.memmap)
    assert not found.extra.flags.owndata
    assert found.extra.strides == (3 * 96 * 96, 1, 96, 96 * 96)
    assert np.array_equal(found.extra, pictures("unlabeled"))
    assert found.n_images == 6
    with (folder / "stl10_binary" / "unlabeled_X.bin").open("r+b") as file:
        file.write(b"\x07")
    assert found.extra[0, 0, 0, 0] == 7  # what lies on the disk now


def test_another_size(folder):
    found = load_stl10(folder, ("test",), 32, extra_splits=("unlabeled", "train"))
    assert found.images.shape == (2, 32, 32, 3)
    assert found.extra.shape == (3 + 4, 32, 32, 3)
    assert found.extra[:, :, 0].min() == 255
    assert found.extra[:, :, 2:].max() < 200
    assert "size is 4" in refused(folder, ("test",), 4)


def test_unlabelled_images_alone_have_no_targets(folder):
    found = load_stl10(folder, ("unlabeled",))
    assert np.array_equal(found.images, pictures("unlabeled"))
    assert (found.targets, found.class_names) == (None, ())
    assert found.names[0] == "unlabeled/00000"
    assert "extra" in refused(folder, ("train", "unlabeled"))


def test_class_names_are_the_files_or_the_known_ones(folder):
    path = folder / "stl10_binary" / "class_names.txt"
    path.write_text("\n".join(reversed(STL10_CLASSES)))
    assert load_stl10(folder, ("test",)).class_names == STL10_CLASSES[::-1]
    path.write_text("one\ntwo\n")
    message = refused(folder, ("test",))
    assert "2 class names instead of 10" in message
    path.unlink()
    assert load_stl10(folder, ("test",)).class_names == STL10_CLASSES


@pytest.mark.parametrize("name", ["test_X.bin", "test_y.bin", "unlabeled_X.bin"])
def test_a_missing_file(folder, name):
    (folder / "stl10_binary" / name).unlink()
    message = refused(folder, ("test",), extra_splits=("unlabeled",))
    assert str(folder / "stl10_binary" / name) in message
    assert "get it again" in message


@pytest.mark.parametrize("name", ["test_X.bin", "test_y.bin", "unlabeled_X.bin"])
@pytest.mark.parametrize("change", ["cut", "emptied", "grown"])
def test_a_file_of_another_length(folder, name, change):
    path = folder / "stl10_binary" / name
    if change == "grown":
        path.write_bytes(path.read_bytes() + b"\x01")
    else:
        os.truncate(path, 0 if change == "emptied" else path.stat().st_size - 1)
    message = refused(folder, ("test",), extra_splits=("unlabeled",))
    assert str(path) in message
    assert "get it again" in message


@pytest.mark.parametrize("label", [0, 11, 255])
def test_labels_out_of_range(folder, label):
    (folder / "stl10_binary" / "test_y.bin").write_bytes(bytes([1, label]))
    assert f"label {label}, not one from 1 to 10" in refused(folder, ("test",))


@pytest.mark.parametrize(
    ("splits", "extra"), [((), ()), (("val",), ()), (("test",), ("val",)), (("test", "test"), ())]
)
def test_wrong_splits(folder, splits, extra):
    assert "STL-10" in refused(folder, splits, extra_splits=extra)

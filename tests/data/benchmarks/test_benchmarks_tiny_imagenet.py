import os

import numpy as np
import pytest
from PIL import Image

from dcdc.data.benchmarks.tiny_imagenet import list_tiny_imagenet
from dcdc.data.decode import decode_image
from dcdc.data.listing import BadImage
from dcdc.errors import InputError

WNIDS = ("n02124075", "n01443537", "n03126707", "n02012849")  # not in the order of the ids
WORDS = (
    "n00001740\tentity\n"
    "n01443537\tgoldfish, Carassius auratus\n"
    "n02012849\tcrane\n"
    "n02124075\tEgyptian cat\n"
    "n03126707\tcrane, hoist\n"
)
ANNOTATIONS = (("val_3.JPEG", 1), ("val_0.JPEG", 3), ("val_10.JPEG", 1))  # file, code


def write(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 64), (value, value, value)).save(path, "JPEG")
    return path


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "tiny-imagenet-200"
    for code, wnid in enumerate(WNIDS):
        for number in range(2):
            write(place / "train" / wnid / "images" / f"{wnid}_{number}.JPEG", 40 * code)
        (place / "train" / wnid / f"{wnid}_boxes.txt").touch()
    lines = []
    for name, code in ANNOTATIONS:
        write(place / "val" / "images" / name, 40 * code)
        lines.append(f"{name}\t{WNIDS[code]}\t0\t32\t44\t62\n")
    write(place / "val" / "images" / "val_1.JPEG")  # not listed
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    (place / "words.txt").write_text(WORDS)
    return tmp_path


def refused(*arguments):
    with pytest.raises(InputError) as caught:
        list_tiny_imagenet(*arguments)
    assert str(caught.value).isprintable()
    return str(caught.value)


def classes_seen(listing):
    """The class of each image as its grey value tells it."""
    greys = [decode_image(path, 64, 1)[5, 5, 0] for path in listing.encoded(0)]
    return np.rint(np.array(greys) / 40).astype(int).tolist()


def test_the_classes_are_in_the_order_of_wnids(folder):
    found = list_tiny_imagenet(folder, ("train",))
    assert found.class_names == (
        "Egyptian cat",
        "goldfish",
        "crane (n03126707)",
        "crane (n02012849)",
    )
    assert found.targets.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert classes_seen(found) == found.targets.tolist()
    assert found.names[2] == "train/n01443537/images/n01443537_0.JPEG"


def test_the_annotations_and_not_the_files_give_the_targets(folder):
    found = list_tiny_imagenet(folder / "tiny-imagenet-200", ("val",))
    assert list(found.names) == [f"val/images/{name}" for name, _ in ANNOTATIONS]
    assert found.targets.tolist() == [code for _, code in ANNOTATIONS]
    assert classes_seen(found) == found.targets.tolist()


@pytest.mark.parametrize("splits", [("train", "val"), ("val", "train")])
def test_splits_come_in_the_order_given(folder, splits):
    found = list_tiny_imagenet(folder, splits)
    parts = [list_tiny_imagenet(folder, (split,)) for split in splits]
    assert list(found.names) == [name for part in parts for name in part.names]
    assert found.targets.tolist() == [code for part in parts for code in part.targets]
    assert list(found.encoded(7)) == [path for part in parts for path in part.encoded(0)][7:]


def test_any_change_of_an_image_changes_the_fingerprint(folder):
    before = list_tiny_imagenet(folder, ("val",)).fingerprint
    assert list_tiny_imagenet(folder, ("val",)).fingerprint == before
    os.utime(folder / "tiny-imagenet-200" / "val" / "images" / "val_0.JPEG", ns=(0, 1))
    assert list_tiny_imagenet(folder, ("val",)).fingerprint != before


def test_a_link_that_leads_out_is_a_bad_image(folder):
    path = folder / "tiny-imagenet-200" / "val" / "images" / "val_0.JPEG"
    path.unlink()
    path.symlink_to(write(folder / "outside.JPEG"))
    found = list(list_tiny_imagenet(folder, ("val",)).encoded(0))
    assert [isinstance(entry, BadImage) for entry in found] == [False, True, False]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("gone.JPEG\tn01443537\t0\t0\t1\t1", "gone.JPEG"),
        ("val_0.JPEG\tn00001740\t0\t0\t1\t1", "n00001740"),
        ("val_0.JPEG", "val_0.JPEG"),
        ("../../train/n01443537/images/n01443537_0.JPEG\tn01443537", "../.."),
        ("\xff", "val_annotations.txt"),
        ("", "no image"),
    ],
)
def test_wrong_annotations(folder, line, named):
    path = folder / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_bytes(line.encode("latin1") + b"\n")
    message = refused(folder, ("val",))
    assert named in message
    assert str(path) in message
    assert "get it again" in message


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("wnids.txt", ("train",)),
        ("words.txt", ("train",)),
        ("val/val_annotations.txt", ("val",)),
        ("val/images/val_10.JPEG", ("train", "val")),
    ],
)
def test_a_missing_file(folder, name, splits):
    (folder / "tiny-imagenet-200" / name).unlink()
    message = refused(folder, splits)
    assert name.rpartition("/")[2] in message
    assert "get it again" in message


def test_missing_classes_are_named_up_to_a_point(folder):
    place = folder / "tiny-imagenet-200"
    ids = [f"n{number:08d}" for number in range(30)]
    (place / "wnids.txt").write_text("\n".join([*WNIDS, *ids]))
    message = refused(folder, ("train",))
    assert "n00000000" in message
    assert "and 10 more classes" in message
    (place / "wnids.txt").write_text("\n")
    assert "empty" in refused(folder, ("train",))


def test_a_class_without_words_goes_by_its_id(folder):
    (folder / "tiny-imagenet-200" / "words.txt").write_text("n02124075\tEgyptian cat\n")
    assert list_tiny_imagenet(folder, ("val",)).class_names == ("Egyptian cat", *WNIDS[1:])


@pytest.mark.parametrize("splits", [(), ("test",), ("val", "val")])
def test_wrong_splits(folder, splits):
    assert "Tiny ImageNet" in refused(folder, splits)

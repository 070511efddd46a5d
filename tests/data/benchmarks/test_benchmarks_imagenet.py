import os

import numpy as np
import pytest
from PIL import Image

from dcdc.data.benchmarks.imagenet import (
    IMAGENET_10,
    IMAGENET_DOGS,
    list_imagenet_subset,
    list_tiny_imagenet,
)
from dcdc.data.decode import decode_image
from dcdc.data.listing import BadImage
from dcdc.errors import InputError

WNIDS = {"n02128757": "snow leopard", "n02085936": "Maltese dog"}  # not in the order of the ids


def write(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 16), (value, value, value)).save(path, "JPEG")
    return path


@pytest.fixture
def folder(tmp_path):
    train = tmp_path / "imagenet"
    for value, name in enumerate(["n02085936_2", "n02085936_10", "n02128757_7"]):
        write(train / name.partition("_")[0] / f"{name}.JPEG", 40 * value)
    write(train / "n99999999" / "n99999999_1.JPEG")
    (train / "n02085936" / "notes.txt").touch()
    (train / "n02085936" / "._n02085936_2.JPEG").touch()
    return train


def refused(*arguments):
    with pytest.raises(InputError) as caught:
        list_imagenet_subset(*arguments)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_the_classes_come_in_the_order_given(folder):
    found = list_imagenet_subset(folder, WNIDS)
    assert list(found.names) == [
        "n02128757/n02128757_7.JPEG",
        "n02085936/n02085936_10.JPEG",
        "n02085936/n02085936_2.JPEG",
    ]
    assert found.class_names == ("snow leopard", "Maltese dog")
    assert found.targets.tolist() == [0, 1, 1]
    assert found.targets.dtype == np.int64
    greys = [decode_image(path, 16, 1)[8, 8, 0] for path in found.encoded(0)]
    assert np.allclose(greys, [80, 40, 0], atol=2)
    assert list(found.encoded(2)) == [folder / "n02085936" / "n02085936_2.JPEG"]
    assert list(found.encoded(3)) == []


@pytest.mark.parametrize("above", ["train", "ILSVRC/Data/CLS-LOC/train"])
def test_the_train_folder_is_found(folder, tmp_path, above):
    (tmp_path / "root" / above).parent.mkdir(parents=True)
    folder.rename(tmp_path / "root" / above)
    found = list_imagenet_subset(tmp_path / "root", WNIDS)
    assert found.names[0] == "n02128757/n02128757_7.JPEG"


def test_every_missing_class_is_named(folder):
    for path in (folder / "n02128757").iterdir():
        path.unlink()
    message = refused(folder, IMAGENET_10)
    assert str(folder) in message
    assert all(wnid in message for wnid in IMAGENET_10 if wnid != "n02085936")
    assert "n02085936" not in message
    assert "n02128757" in refused(folder, WNIDS)
    assert all(wnid in refused(folder / "gone", IMAGENET_DOGS) for wnid in IMAGENET_DOGS)


def test_any_change_of_a_file_changes_the_fingerprint(folder):
    def fingerprint():
        return list_imagenet_subset(folder, WNIDS).fingerprint

    path, seen = folder / "n02085936" / "n02085936_2.JPEG", [fingerprint()]
    assert fingerprint() == seen[0]
    write(folder / "n99999999" / "n99999999_2.JPEG")  # of a class that is not asked for
    assert fingerprint() == seen[0]
    os.utime(path, ns=(0, 1))
    seen.append(fingerprint())
    path.write_bytes(path.read_bytes() + b"\0")
    os.utime(path, ns=(0, 1))
    seen.append(fingerprint())
    path.rename(path.with_name("n02085936_3.JPEG"))
    seen.append(fingerprint())
    assert len(set(seen)) == 4


def test_links_that_lead_out_are_bad_images(folder, tmp_path):
    outside = write(tmp_path / "outside.JPEG")
    inside = folder / "n02085936"
    (inside / "n02085936_3.JPEG").symlink_to(outside)
    (inside / "n02085936_4.JPEG").symlink_to(inside / "n02085936_2.JPEG")
    (inside / "n02085936_5.JPEG").symlink_to("../n02128757/n02128757_7.JPEG")
    (inside / "n02085936_6.JPEG").symlink_to("../../outside.JPEG")
    (inside / "n02085936_7.JPEG").symlink_to("gone.JPEG")
    (inside / "n02085936_8.JPEG").symlink_to("n02085936_8.JPEG")
    (tmp_path / "linked").symlink_to(folder)  # the folder itself may be a link
    for root in (folder, tmp_path / "linked"):
        found = list_imagenet_subset(root, WNIDS)
        encoded = dict(zip(found.names, found.encoded(0), strict=True))
        faults = {
            name.rpartition("_")[2]: str(fault)
            for name, fault in encoded.items()
            if isinstance(fault, BadImage)
        }
        assert list(faults) == ["3.JPEG", "6.JPEG", "7.JPEG", "8.JPEG"]
        assert all("leads out of the folder" in faults[f"{number}.JPEG"] for number in (3, 6))
        assert all("leads nowhere" in faults[f"{number}.JPEG"] for number in (7, 8))


def test_a_change_behind_a_link_changes_the_fingerprint(folder):
    link = folder / "n02085936" / "n02085936_9.JPEG"
    link.symlink_to(write(folder / "shared.JPEG"))
    before = list_imagenet_subset(folder, WNIDS).fingerprint
    os.utime(folder / "shared.JPEG", ns=(0, 1))
    assert list_imagenet_subset(folder, WNIDS).fingerprint != before


@pytest.mark.parametrize(("wnids", "n_classes"), [(IMAGENET_10, 10), (IMAGENET_DOGS, 15)])
def test_the_known_subsets(wnids, n_classes):
    assert len(wnids) == len(set(wnids.values())) == n_classes
    assert list(wnids) == sorted(wnids)
    assert all(wnid[0] == "n" and len(wnid) == 9 and wnid[1:].isdigit() for wnid in wnids)


TINY_WNIDS = (
    "n02124075",
    "n01443537",
    "n03126707",
    "n02012849",
)  # not in the order of the ids
WORDS = (
    "n00001740\tentity\n"
    "n01443537\tgoldfish, Carassius auratus\n"
    "n02012849\tcrane\n"
    "n02124075\tEgyptian cat\n"
    "n03126707\tcrane, hoist\n"
)
ANNOTATIONS = (("val_3.JPEG", 1), ("val_0.JPEG", 3), ("val_10.JPEG", 1))  # file, code


def write_tiny(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 64), (value, value, value)).save(path, "JPEG")
    return path


@pytest.fixture
def tiny(tmp_path):
    place = tmp_path / "tiny-imagenet-200"
    for code, wnid in enumerate(TINY_WNIDS):
        for number in range(2):
            write_tiny(place / "train" / wnid / "images" / f"{wnid}_{number}.JPEG", 40 * code)
        (place / "train" / wnid / f"{wnid}_boxes.txt").touch()
    lines = []
    for name, code in ANNOTATIONS:
        write_tiny(place / "val" / "images" / name, 40 * code)
        lines.append(f"{name}\t{TINY_WNIDS[code]}\t0\t32\t44\t62\n")
    write_tiny(place / "val" / "images" / "val_1.JPEG")  # not listed
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("\n".join(TINY_WNIDS) + "\n")
    (place / "words.txt").write_text(WORDS)
    return tmp_path


def refused_tiny(*arguments):
    with pytest.raises(InputError) as caught:
        list_tiny_imagenet(*arguments)
    assert str(caught.value).isprintable()
    return str(caught.value)


def classes_seen(listing):
    """The class of each image as its grey value tells it."""
    greys = [decode_image(path, 64, 1)[5, 5, 0] for path in listing.encoded(0)]
    return np.rint(np.array(greys) / 40).astype(int).tolist()


def test_the_classes_are_in_the_order_of_wnids(tiny):
    found = list_tiny_imagenet(tiny, ("train",))
    assert found.class_names == (
        "Egyptian cat",
        "goldfish",
        "crane (n03126707)",
        "crane (n02012849)",
    )
    assert found.targets.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert classes_seen(found) == found.targets.tolist()
    assert found.names[2] == "train/n01443537/images/n01443537_0.JPEG"


def test_the_annotations_and_not_the_files_give_the_targets(tiny):
    found = list_tiny_imagenet(tiny / "tiny-imagenet-200", ("val",))
    assert list(found.names) == [f"val/images/{name}" for name, _ in ANNOTATIONS]
    assert found.targets.tolist() == [code for _, code in ANNOTATIONS]
    assert classes_seen(found) == found.targets.tolist()


@pytest.mark.parametrize("splits", [("train", "val"), ("val", "train")])
def test_splits_come_in_the_order_given(tiny, splits):
    found = list_tiny_imagenet(tiny, splits)
    parts = [list_tiny_imagenet(tiny, (split,)) for split in splits]
    assert list(found.names) == [name for part in parts for name in part.names]
    assert found.targets.tolist() == [code for part in parts for code in part.targets]
    assert list(found.encoded(7)) == [path for part in parts for path in part.encoded(0)][7:]


def test_any_change_of_an_image_changes_the_fingerprint(tiny):
    before = list_tiny_imagenet(tiny, ("val",)).fingerprint
    assert list_tiny_imagenet(tiny, ("val",)).fingerprint == before
    os.utime(tiny / "tiny-imagenet-200" / "val" / "images" / "val_0.JPEG", ns=(0, 1))
    assert list_tiny_imagenet(tiny, ("val",)).fingerprint != before


def test_a_link_that_leads_out_is_a_bad_image(tiny):
    path = tiny / "tiny-imagenet-200" / "val" / "images" / "val_0.JPEG"
    path.unlink()
    path.symlink_to(write_tiny(tiny / "outside.JPEG"))
    found = list(list_tiny_imagenet(tiny, ("val",)).encoded(0))
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
def test_wrong_annotations(tiny, line, named):
    path = tiny / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_bytes(line.encode("latin1") + b"\n")
    message = refused_tiny(tiny, ("val",))
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
def test_a_missing_file(tiny, name, splits):
    (tiny / "tiny-imagenet-200" / name).unlink()
    message = refused_tiny(tiny, splits)
    assert name.rpartition("/")[2] in message
    assert "get it again" in message


def test_missing_classes_are_named_up_to_a_point(tiny):
    place = tiny / "tiny-imagenet-200"
    ids = [f"n{number:08d}" for number in range(30)]
    (place / "wnids.txt").write_text("\n".join([*TINY_WNIDS, *ids]))
    message = refused_tiny(tiny, ("train",))
    assert "n00000000" in message
    assert "and 10 more classes" in message
    (place / "wnids.txt").write_text("\n")
    assert "empty" in refused_tiny(tiny, ("train",))


def test_a_class_without_words_goes_by_its_id(tiny):
    (tiny / "tiny-imagenet-200" / "words.txt").write_text("n02124075\tEgyptian cat\n")
    assert list_tiny_imagenet(tiny, ("val",)).class_names == (
        "Egyptian cat",
        *TINY_WNIDS[1:],
    )


@pytest.mark.parametrize("splits", [(), ("test",), ("val", "val")])
def test_wrong_splits(tiny, splits):
    assert "Tiny ImageNet" in refused_tiny(tiny, splits)

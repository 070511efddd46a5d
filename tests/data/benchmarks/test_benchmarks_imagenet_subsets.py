import os

import numpy as np
import pytest
from PIL import Image

from dcdc.data.benchmarks.imagenet_subsets import (
    IMAGENET_10,
    IMAGENET_DOGS,
    list_imagenet_subset,
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

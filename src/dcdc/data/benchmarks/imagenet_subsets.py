"""ImageNet-10 and ImageNet-Dogs: chosen classes of ImageNet's train folder, as files."""

from collections.abc import Mapping
from pathlib import Path

from dcdc.data.benchmarks.class_folders import class_files, files_listing
from dcdc.data.benchmarks.original_files import naming_what_cannot_be_read
from dcdc.data.listing import Listing

IMAGENET_10 = {
    "n02056570": "king penguin",
    "n02085936": "Maltese dog",
    "n02128757": "snow leopard",
    "n02690373": "airliner",
    "n02692877": "airship",
    "n03095699": "container ship",
    "n04254680": "soccer ball",
    "n04285008": "sports car",
    "n04467665": "trailer truck",
    "n07747607": "orange",
}
IMAGENET_DOGS = {
    "n02085936": "Maltese dog",
    "n02086646": "Blenheim spaniel",
    "n02088238": "basset",
    "n02091467": "Norwegian elkhound",
    "n02097130": "giant schnauzer",
    "n02099601": "golden retriever",
    "n02101388": "Brittany spaniel",
    "n02101556": "clumber",
    "n02102177": "Welsh springer spaniel",
    "n02105056": "groenendael",
    "n02105412": "kelpie",
    "n02105855": "Shetland sheepdog",
    "n02107142": "Doberman",
    "n02110958": "pug",
    "n02112137": "chow",
}
_TRAIN_FOLDERS = (".", "train", "ILSVRC/Data/CLS-LOC/train")


def list_imagenet_subset(folder: Path, wnids: Mapping[str, str]) -> Listing:
    """The classes of `wnids` (id -> name), in its order; `folder` is or holds a train folder."""
    places = [folder / name for name in _TRAIN_FOLDERS]
    with naming_what_cannot_be_read(folder):
        place = max(places, key=lambda place: sum((place / wnid).is_dir() for wnid in wnids))
    files = class_files(place, {wnid: place / wnid for wnid in wnids})
    return files_listing(place, files, tuple(wnids.values()))

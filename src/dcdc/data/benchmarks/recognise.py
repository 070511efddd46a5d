"""A folder of a benchmark's original files, known by the names of the files."""

from pathlib import Path

_TELLTALES = {
    "cifar10": ("data_batch_1.bin", "data_batch_1"),
    "cifar100": ("fine_label_names.txt", "train.bin"),
    "stl10": ("train_X.bin",),
    "tiny-imagenet": ("wnids.txt",),
    "mnist": tuple(
        f"train-images{dot}idx3-ubyte{suffix}" for dot in ("-", ".") for suffix in ("", ".gz")
    ),
}
_CIFAR100_PYTHON = ("train", "test", "meta")


def recognised(folder: Path) -> str | None:
    """The benchmark's name; the idx files of MNIST and Fashion-MNIST look alike."""
    for name, files in _TELLTALES.items():
        if any((folder / file).is_file() for file in files):
            return name
    if all((folder / file).is_file() for file in _CIFAR100_PYTHON):
        return "cifar100"
    return None

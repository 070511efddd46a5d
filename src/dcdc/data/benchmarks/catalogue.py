"""The benchmarks: how each is split, what counts as truth, where its files come from and go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dcdc.data.benchmarks.cifar import load_cifar10, load_cifar100
from dcdc.data.benchmarks.idx import FASHION_CLASSES, load_idx_digits
from dcdc.data.benchmarks.imagenet import (
    IMAGENET_10,
    IMAGENET_DOGS,
    list_imagenet_subset,
    list_tiny_imagenet,
)
from dcdc.data.benchmarks.stl10 import load_stl10
from dcdc.data.cache_folder import cache_folder
from dcdc.data.image_set import ImageSet
from dcdc.data.listing import Listing
from dcdc.errors import InputError
from dcdc.nearest_name import unknown


@dataclass(frozen=True)
class RemoteFile:
    url: str
    name: str
    md5: str
    n_bytes: int
    unpacks_to: str = ""
    """The one folder that an archive holds; "" for a file that is read as it is."""
    unpacked_bytes: int = 0
    """About what that folder takes on disk."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    name: str
    title: str
    n_classes: int
    side: int
    splits: Mapping[str, int]
    """Name -> number of images."""
    answered: tuple[str, ...] = ("train", "test")
    """The splits that train both heads and are evaluated."""
    targets: str
    """What counts as truth."""
    folder: str
    """Below `downloads/`; several benchmarks may share it."""
    citation: str
    licence: str = "none stated"
    read: Callable[..., ImageSet | Listing]
    """Of folder, splits, size, and of `extra_splits` where it has any: images, or where they lie. A
    Listing has no size yet: decoding brings it to one."""
    extra: tuple[str, ...] = ()
    """The splits that train the over-clustering head alone."""
    paper_preset: str | None = None
    files: tuple[RemoteFile, ...] = ()
    by_hand: str = ""
    """How to place what cannot be downloaded, and how it must look."""
    by_hand_folders: tuple[str, ...] = ()
    """What is there then, below its folder."""

    @property
    def n_images(self) -> int:
        return sum(self.splits[split] for split in self.answered)

    @property
    def n_bytes(self) -> int:
        """To download."""
        return sum(file.n_bytes for file in self.files)

    def load(
        self, folder: Path, splits: Sequence[str], extra_splits: Sequence[str], size: int | None
    ) -> ImageSet | Listing:
        if not extra_splits:
            return self.read(folder, splits, size)
        if not self.extra:
            raise InputError(
                f"extra splits {', '.join(extra_splits)} of {folder}: this benchmark has none, "
                "leave them out"
            )
        return self.read(folder, splits, size, extra_splits=extra_splits)


def benchmark(name: str) -> Benchmark:
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    raise InputError(unknown("benchmark", name, BENCHMARKS))


def folder_of(benchmark: Benchmark) -> Path:
    return cache_folder() / "downloads" / benchmark.folder


def is_here(benchmark: Benchmark) -> bool:
    """By names and sizes; an unpacked folder appears whole or not at all."""
    folder = folder_of(benchmark)
    files_are = all(is_placed(file, folder) for file in benchmark.files)
    return files_are and all((folder / name).is_dir() for name in benchmark.by_hand_folders)


def is_placed(file: RemoteFile, folder: Path) -> bool:
    if file.unpacks_to:
        return (folder / file.unpacks_to).is_dir()
    path = folder / file.name
    return path.is_file() and path.stat().st_size == file.n_bytes


def how_to_place(benchmark: Benchmark) -> str:
    """What a person can do without `dcdc data get`."""
    folder = folder_of(benchmark)
    if benchmark.by_hand:
        return (
            f"{benchmark.by_hand}; here that is {folder / 'train'}; or place nothing and say where "
            f"it lies: dcdc fit {benchmark.name}:/path/to/imagenet"
        )
    files = " and ".join(file.name for file in benchmark.files)
    return (
        f"put {files} into {folder} and run dcdc data get {benchmark.name}, or name a folder that "
        f"has the unpacked files as {benchmark.name}:FOLDER"
    )


_TORONTO = "https://www.cs.toronto.edu/~kriz"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_CIFAR_CITATION = (
    "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, technical report, 2009"
)
_CIFAR_SPLITS = {"train": 50_000, "test": 10_000}
_CIFAR100_FILE = RemoteFile(
    f"{_TORONTO}/cifar-100-binary.tar.gz",
    "cifar-100-binary.tar.gz",
    "03b5dce01913d631647c71ecec9e9cb8",
    168_513_733,
    unpacks_to="cifar-100-binary",
    unpacked_bytes=185_000_000,
)
_IDX_SPLITS = {"train": 60_000, "test": 10_000}
_IDX_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_IMAGENET_CITATION = (
    "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; classes as "
    "in Chang et al., Deep Adaptive Image Clustering, ICCV 2017"
)
_IMAGENET_LICENCE = "non-commercial research and education, under the terms of image-net.org"
_IMAGENET_BY_HAND = (
    "ImageNet cannot be downloaded freely: get ILSVRC2012's training images from image-net.org and "
    "put a folder, or a link to one, named `train` into downloads/imagenet/ of the cache folder, "
    "with a folder of .JPEG files for each class (train/n02056570/*.JPEG and so on; all classes, "
    "or just those that are needed)"
)


def _idx_files(base: str, sums: Mapping[str, int]) -> tuple[RemoteFile, ...]:
    """md5 -> bytes, of the four files in their order."""
    return tuple(
        RemoteFile(f"{base}/{name}", name, md5, n_bytes)
        for name, (md5, n_bytes) in zip(_IDX_NAMES, sums.items(), strict=True)
    )


def _of_imagenet(
    name: str, title: str, classes: Mapping[str, str], n_images: int, targets: str
) -> Benchmark:
    def list_train(folder: Path, splits: Sequence[str], _: int | None) -> Listing:
        if tuple(splits) != ("train",):
            raise InputError(f"splits {', '.join(splits)} of {folder}: give train, the only one")
        return list_imagenet_subset(folder, classes)

    return Benchmark(
        name=name,
        title=title,
        n_classes=len(classes),
        side=96,
        splits={"train": n_images},
        answered=("train",),
        targets=targets,
        paper_preset=f"{name}-paper",
        folder="imagenet",
        by_hand=_IMAGENET_BY_HAND,
        by_hand_folders=tuple(f"train/{wnid}" for wnid in classes),
        citation=_IMAGENET_CITATION,
        licence=_IMAGENET_LICENCE,
        read=list_train,
    )


_ALL = (
    Benchmark(
        name="cifar10",
        title="CIFAR-10",
        n_classes=10,
        side=32,
        splits=_CIFAR_SPLITS,
        targets="the 10 classes",
        paper_preset="cifar10-paper",
        folder="cifar10",
        files=(
            RemoteFile(
                f"{_TORONTO}/cifar-10-binary.tar.gz",
                "cifar-10-binary.tar.gz",
                "c32a1d4ab5d03f1284b67883e8d87530",
                170_052_171,
                unpacks_to="cifar-10-batches-bin",
                unpacked_bytes=185_000_000,
            ),
        ),
        citation=_CIFAR_CITATION,
        read=load_cifar10,
    ),
    Benchmark(
        name="cifar100",
        title="CIFAR-100",
        n_classes=100,
        side=32,
        splits=_CIFAR_SPLITS,
        targets="the 100 fine classes",
        folder="cifar100",
        files=(_CIFAR100_FILE,),
        citation=_CIFAR_CITATION,
        read=partial(load_cifar100, coarse=False),
    ),
    Benchmark(
        name="cifar100-20",
        title="CIFAR-100-20",
        n_classes=20,
        side=32,
        splits=_CIFAR_SPLITS,
        targets="the 20 super-classes of CIFAR-100",
        paper_preset="cifar100-20-paper",
        folder="cifar100",
        files=(_CIFAR100_FILE,),
        citation=_CIFAR_CITATION,
        read=partial(load_cifar100, coarse=True),
    ),
    Benchmark(
        name="stl10",
        title="STL-10",
        n_classes=10,
        side=96,
        splits={"train": 5_000, "test": 8_000, "unlabeled": 100_000},
        extra=("unlabeled",),
        targets="the 10 classes",
        paper_preset="stl10-paper",
        folder="stl10",
        files=(
            RemoteFile(
                "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
                "stl10_binary.tar.gz",
                "91f7769df0f17e558f3565bffb0c7dfb",
                2_640_397_119,
                unpacks_to="stl10_binary",
                unpacked_bytes=3_125_000_000,
            ),
        ),
        citation="Coates, Ng and Lee, An Analysis of Single-Layer Networks in Unsupervised "
        "Feature Learning, AISTATS 2011",
        licence="none stated; its images are from ImageNet",
        read=load_stl10,
    ),
    Benchmark(
        name="tiny-imagenet",
        title="Tiny-ImageNet",
        n_classes=200,
        side=64,
        splits={"train": 100_000, "val": 10_000},
        answered=("train",),
        targets="the 200 classes",
        paper_preset="tiny-imagenet-paper",
        folder="tiny-imagenet",
        files=(
            RemoteFile(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "tiny-imagenet-200.zip",
                "90528d7ca1a48142e341f4ef8d21d0de",
                248_100_043,
                unpacks_to="tiny-imagenet-200",
                unpacked_bytes=600_000_000,  # small files take whole blocks
            ),
        ),
        citation="Le and Yang, Tiny ImageNet Visual Recognition Challenge, CS 231N, 2015",
        licence="none stated; its images are from ImageNet",
        read=lambda folder, splits, _: list_tiny_imagenet(folder, splits),
    ),
    _of_imagenet("imagenet-10", "ImageNet-10", IMAGENET_10, 13_000, "10 of ImageNet's classes"),
    _of_imagenet(
        *("imagenet-dogs", "ImageNet-Dogs", IMAGENET_DOGS, 19_500),
        "15 of ImageNet's breeds of dog",
    ),
    Benchmark(
        name="mnist",
        title="MNIST",
        n_classes=10,
        side=28,
        splits=_IDX_SPLITS,
        targets="the 10 digits",
        folder="mnist",
        files=_idx_files(
            _MNIST,
            {
                "f68b3c2dcbeaaa9fbdd348bbdeb94873": 9_912_422,
                "d53e105ee54ea40749a09fcbcd1e9432": 28_881,
                "9fb629c4189551a2d022fa330f9573f3": 1_648_877,
                "ec29112dd5afa0611ce80d1b7f02629c": 4_542,
            },
        ),
        citation="LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document "
        "Recognition, Proceedings of the IEEE, 1998",
        licence="CC BY-SA 3.0",
        read=load_idx_digits,
    ),
    Benchmark(
        name="fashion-mnist",
        title="Fashion-MNIST",
        n_classes=10,
        side=28,
        splits=_IDX_SPLITS,
        targets="the 10 kinds of clothing",
        folder="fashion-mnist",
        files=_idx_files(
            _FASHION,
            {
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d": 26_421_880,
                "25c81989df183df01b3e8a0aad5dffbe": 29_515,
                "bef4ecab320f06d8554ea6380940ec79": 4_422_102,
                "bb300cfdad3c16e7a12a480ee83cd310": 5_148,
            },
        ),
        citation="Xiao, Rasul and Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking "
        "Machine Learning Algorithms, arXiv 1708.07747, 2017",
        licence="MIT",
        read=partial(load_idx_digits, class_names=FASHION_CLASSES),
    ),
)
BENCHMARKS: dict[str, Benchmark] = {entry.name: entry for entry in _ALL}

"""Copies of the files that a backbone is built from, so that a run folder needs nothing beside it.

A run folder holds all weights. What a model of transformers is stands in its config.json, and an
exported program is its own file: these are kept with it.
"""

import shutil
from pathlib import Path

from dcdc.networks.backbones import find_backbone
from dcdc.runtime.atomic_files import atomic_file

_WITH_WEIGHTS_BESIDE = ("timm", "torchvision")
"""Schemes whose names may end in @PATH, a file of weights alone."""


def public_spec(spec: str) -> str:
    """A backbone's spec without the folders that lead to its files, which concern nobody else."""
    scheme, colon, rest = spec.partition(":")
    if not colon:
        return spec
    if scheme == "file":
        return f"file:{Path(rest).name}"
    if scheme == "hf":
        is_folder = rest.startswith((".", "/", "~")) or rest.count("/") != 1 or Path(rest).is_dir()
        return f"hf:{Path(rest).name}" if is_folder else spec
    name, at, path = rest.partition("@")
    return f"{scheme}:{name}@{Path(path).name}" if at else spec


def keep_files(spec: str, folder: Path) -> list[Path]:
    """The copies, in `folder`; none where the backbone is code alone."""
    copies = []
    for path in find_backbone(spec).files:
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / path.name
        copies.append(copy)
        if not (copy.exists() and copy.samefile(path)):
            with atomic_file(copy) as temporary:
                shutil.copyfile(path, temporary)
    return copies


def spec_of_kept(spec: str, folder: Path) -> str:
    """How to find the backbone by the copies in `folder`, without its pretrained weights; `spec`
    itself where it has none."""
    scheme, _, rest = spec.partition(":")
    if scheme in _WITH_WEIGHTS_BESIDE:
        return spec.partition("@")[0]
    if scheme == "hf" and folder.is_dir():
        return f"hf:{folder}"
    if scheme == "file" and (folder / Path(rest).name).is_file():
        return f"file:{folder / Path(rest).name}"
    return spec

"""Copies of the files that a backbone is built from, so that a run folder needs nothing beside it.

A run folder holds all weights. What a model of transformers is stands in its config.json, and an
exported program is its own file: these are kept with it.
"""

import shutil
from pathlib import Path

from dcdc.networks.backbones import find_backbone


def keep_files(spec: str, folder: Path) -> list[Path]:
    """The copies, in `folder`; none where the backbone is code alone."""
    copies = []
    for path in find_backbone(spec).files:
        folder.mkdir(parents=True, exist_ok=True)
        copies.append(Path(shutil.copyfile(path, folder / path.name)))
    return copies


def spec_of_kept(spec: str, folder: Path) -> str:
    """How to find the backbone by the copies in `folder`; `spec` itself where it has none."""
    scheme, _, rest = spec.partition(":")
    if scheme == "hf" and folder.is_dir():
        return f"hf:{folder}"
    if scheme == "file" and (folder / Path(rest).name).is_file():
        return f"file:{folder / Path(rest).name}"
    return spec

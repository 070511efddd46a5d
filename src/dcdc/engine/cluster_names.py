"""What people call the clusters: a small file that the report page saves and predictions tell."""

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from dcdc.engine.model_files import read_json
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import write_text

NAMES_FORMAT = 1
LONGEST_NAME = 100  # characters; a name is a word or two, and report.js knows the same limit


def write_names(path: Path, names: Mapping[int, str]) -> None:
    clusters = {str(cluster): names[cluster] for cluster in sorted(names)}
    content = {"format": NAMES_FORMAT, "clusters": clusters}
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_names(path: Path, n_clusters: int) -> dict[int, str]:
    """A checked names file: {"format": 1, "clusters": {"0": "cats", ...}}; no name, no entry."""
    content = read_json(path)
    clusters = content.get("clusters")
    if content.get("format") != NAMES_FORMAT or not isinstance(clusters, dict):
        raise InputError(
            f'{path} is not a names file: it should read {{"format": {NAMES_FORMAT}, '
            '"clusters": {"0": "cats"}}, as the report page saves it'
        )
    names = {}
    for key, name in clusters.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < n_clusters):
            raise InputError(
                f"{path} names cluster {key[:20]!r}: the run has clusters 0 to {n_clusters - 1}"
            )
        if not isinstance(name, str):
            raise InputError(f"{path}: the name of cluster {key} is not a text")
        line = " ".join(name.split())
        if len(line) > LONGEST_NAME:
            raise InputError(
                f"{path}: the name of cluster {key} has {len(line)} characters, at most "
                f"{LONGEST_NAME} are taken"
            )
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in line):
            raise InputError(f"{path}: the name of cluster {key} holds control characters")
        if line:
            names[int(key)] = line
    return names

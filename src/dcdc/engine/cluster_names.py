"""What people call the clusters: a small file that the report page saves and predictions tell."""

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from dcdc.errors import InputError
from dcdc.runtime.atomic_files import write_text
from dcdc.stored import files
from dcdc.stored.reading import sealed

NAMES_FORMAT = 1
LONGEST_NAME = 100  # characters; a name is a word or two, and report.js knows the same limit


def write_names(path: Path, names: Mapping[int, str]) -> None:
    clusters = {str(cluster): names[cluster] for cluster in sorted(names)}
    content = {"format": NAMES_FORMAT, "clusters": clusters}
    write_text(path, json.dumps(sealed(content), indent=2, ensure_ascii=False) + "\n")


def read_names(path: Path, n_clusters: int) -> dict[int, str]:
    """A checked names file: {"format": 1, "clusters": {"0": "cats", ...}}; no name, no entry."""
    names = {}
    for key, name in files.NAMES.read(path)["clusters"].items():
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < n_clusters):
            raise InputError(
                f"{path} names cluster {key[:20]!r}: the run has clusters 0 to {n_clusters - 1}"
            )
        line = tidy_name(name, f"{path}: the name of cluster {key}")
        if line:
            names[int(key)] = line
    return names


def tidy_name(name: str, whose: str) -> str:
    """In one line; one that is too long, or would steer a terminal, is refused."""
    line = " ".join(name.split())
    if len(line) > LONGEST_NAME:
        raise InputError(f"{whose} has {len(line)} characters, at most {LONGEST_NAME} are taken")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in line):
        raise InputError(f"{whose} holds control characters")
    return line

"""What tells a set of files from itself after a change, without reading the files."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


def files_fingerprint(where: Path, files: Iterable[tuple[str, os.stat_result | None]]) -> str:
    """Of a resolved root, and each file's name, size and time of change; None: there is none."""
    digest = hashlib.sha256(os.fsencode(where.resolve()))
    for name, stat in files:
        digest.update(b"\0" + os.fsencode(name))
        digest.update(b"\0%d %d" % (stat.st_size, stat.st_mtime_ns) if stat else b"\0absent")
    return digest.hexdigest()

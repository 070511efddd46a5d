"""Which commit the code that runs is of: a clone knows, elsewhere `DCDC_COMMIT` may say."""

import os
import subprocess
from pathlib import Path

VARIABLE = "DCDC_COMMIT"
_SECONDS = 5


def own_commit() -> str | None:
    """Short name of the commit, with `-dirty` for changes beside it; outside a clone what the
    environment says, or None."""
    here = Path(__file__)
    # An installed package may lie inside somebody else's repository: then it is not tracked.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return os.environ.get(VARIABLE) or None
    return _git(here.parent, "describe", "--always", "--dirty", "--exclude", "*")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

"""The Hugging Face hub: a folder goes up or comes down; the extra `hub` brings its client."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dcdc.errors import InputError


def push_folder(folder: Path, repo: str, *, private: bool | None = None) -> str:
    """The address of the commit that holds it; the repository is made if there is none."""
    hub = _client(f"cannot push to {repo!r}", repo)
    with _in_one_line(f"cannot push to {repo}"):
        api = hub.HfApi()
        api.create_repo(repo, repo_type="model", private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo, folder_path=folder, repo_type="model"))


def fetch_folder(repo: str, files: Sequence[str], revision: str | None = None) -> Path:
    """Where these files of the repository lie; what was fetched before is not fetched again."""
    hub = _client(f"{repo!r} is no folder here", repo)
    with _in_one_line(f"{repo} is no folder here and cannot be fetched"):
        found = hub.snapshot_download(repo, revision=revision, allow_patterns=list(files))
        return Path(found)


def _client(trouble: str, repo: str) -> Any:
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo):
        raise InputError(f"{trouble}: a repository of the hub is written OWNER/NAME")
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(
            f"{trouble}: the hub needs huggingface_hub, pip install 'dcdc[hub]'"
        ) from None
    return huggingface_hub


@contextmanager
def _in_one_line(trouble: str) -> Iterator[None]:
    """Of whatever the client or the net raises, a person can use the first line."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InputError(f"{trouble}: {lines[0] if lines else type(error).__name__}") from error

"""Weight files: safetensors that a person names, or that lie in the hub's cache or are fetched."""

import os
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import Tensor

from dcdc.errors import InputError, first_line
from dcdc.networks.pretrained.requirements import required
from dcdc.stored.reading import file_digest

WEIGHT_FILE = "model.safetensors"


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Refuses pickles, whatever their name: opening one can run what its author wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    require_file(path)
    if path.suffix != ".safetensors":
        raise InputError(
            f"{path} is not a .safetensors file; pickles (.pt, .pth, .bin) can run code and are"
            " refused",
            remedy="save its state dict by safetensors.torch.save_file",
        )
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not a whole safetensors file: {first_line(error)}") from None


def require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def cached_file(repo: str, name: str, revision: str | None = None) -> Path | None:
    """Where the hub's cache has it; asks nobody."""
    try:
        import huggingface_hub as hub
    except ImportError:
        return None
    found = hub.try_to_load_from_cache(repo, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def hub_file(repo: str, name: str, *, of: str, otherwise: str, revision: str | None = None) -> Path:
    """From the cache, or fetched; its checksum is the hub's. `of` is the backbone that needs it,
    `otherwise` how a person can bring the file without the hub."""
    found = cached_file(repo, name, revision)
    if found is None:
        found = _fetched(repo, name, revision, of, otherwise)
    _require_checksum(found, of)
    return found


def _fetched(repo: str, name: str, revision: str | None, of: str, otherwise: str) -> Path:
    hub = required("huggingface_hub", of=f"the backbone {of}", extra="hub")
    errors = hub.errors
    if not _resolves(hub.constants.ENDPOINT):  # the client would try for half a minute
        raise _unreachable(hub, repo, name, of, otherwise)
    try:
        return Path(hub.hf_hub_download(repo, name, revision=revision))
    except errors.GatedRepoError:
        raise InputError(
            f"the backbone {of}: the hub gives {repo} only to those who accepted its terms",
            remedy=f"accept them and log in by `hf auth login`, or {otherwise}",
        ) from None
    except errors.RevisionNotFoundError:
        raise InputError(f"the backbone {of}: {repo} has no revision {revision!r}") from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"the backbone {of}: the hub has no repository {repo}") from None
    except errors.EntryNotFoundError as error:
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise _unreachable(hub, repo, name, of, otherwise) from None
        raise InputError(
            f"the backbone {of}: {repo} has no {name}, and pickles (.bin) are refused"
        ) from None
    except Exception as error:  # no network has many names, each client's own
        raise _unreachable(hub, repo, name, of, otherwise) from error


def _resolves(address: str) -> bool:
    """Whether the host has a number here; behind a proxy, the proxy knows."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return True
    try:
        return bool(socket.getaddrinfo(urlsplit(address).hostname, 443))
    except OSError:
        return False


def _unreachable(hub: Any, repo: str, name: str, of: str, otherwise: str) -> InputError:
    cache = hub.constants.HF_HUB_CACHE
    return InputError(
        f"the backbone {of} needs {name} of the hub's {repo}, which is neither in {cache} nor can"
        " be fetched: there is no network",
        remedy=(otherwise, "copy that cache from a machine that has it (HF_HOME names its place)"),
    )


def _require_checksum(path: Path, of: str) -> None:
    """Large files are stored in the cache under their SHA-256, as the hub gave it."""
    blob = path.resolve()
    if not re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return
    if file_digest(blob) != blob.name:
        raise InputError(
            f"the backbone {of}: {path} is damaged, its checksum differs from the hub's",
            remedy="delete it and fetch it again",
        )

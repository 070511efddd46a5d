"""One seed for a run; every random stream of it is derived by name, so none shifts another."""

import hashlib

import torch


def derive_seed(seed: int, *path: str | int) -> int:
    """A 63-bit seed for one stream, such as (seed, "order", epoch)."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def derive_generator(
    seed: int, *path: str | int, device: torch.device | None = None
) -> torch.Generator:
    generator = torch.Generator(device=device or "cpu")
    return generator.manual_seed(derive_seed(seed, *path))

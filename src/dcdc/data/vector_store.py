"""Where batches of feature vectors come from: on the device, or streamed from a mapped file.

The rows of a matrix are bytes as those of images are, so an image store keeps and streams them.

Shapes: N rows of D features, B rows of a batch.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.data.store import Store, open_store

Vectors = NDArray[np.floating[Any]]


class VectorStore:
    """N feature vectors; batches are B x D, float32. Row N + i is another copy of row i, where
    copies were given."""

    def __init__(self, store: Store, dtype: torch.dtype, *, has_copies: bool) -> None:
        """`store` has the rows as bytes."""
        self._store, self._dtype = store, dtype
        self.has_copies = has_copies
        self.n_answered, self.is_resident = store.n_answered, store.is_resident

    def __len__(self) -> int:
        return self.n_answered

    @property
    def description(self) -> str:
        return self._store.description

    def expect(self, batches: Tensor) -> None:
        self._store.expect(batches)

    def batch(self, indices: Tensor) -> Tensor:
        return self._numbers(self._store.batch(indices))

    def in_chunks(self, chunk_size: int, rows: slice | None = None) -> Iterator[Tensor]:
        return map(self._numbers, self._store.in_chunks(chunk_size, rows))

    def _numbers(self, rows: Tensor) -> Tensor:
        return rows.flatten(1).contiguous().view(self._dtype).float()


def open_vector_store(
    vectors: Vectors,
    device: torch.device | str,
    copies: Vectors | None = None,
    n_sharing: int = 1,
) -> VectorStore:
    """As `open_store`."""
    if copies is not None and copies.dtype != vectors.dtype:
        copies = copies.astype(vectors.dtype)
    extra = None if copies is None else as_bytes(copies)
    store = open_store(as_bytes(vectors), device, extra, n_sharing)
    dtype = torch.float16 if vectors.dtype == np.float16 else torch.float32
    return VectorStore(store, dtype, has_copies=copies is not None)


def as_bytes(vectors: Vectors) -> NDArray[np.uint8]:
    """N x 1 x 1 x bytes, a view where rows lie one after the other."""
    if not vectors.flags.c_contiguous:
        vectors = np.ascontiguousarray(vectors)
    return vectors.view(np.uint8).reshape(len(vectors), 1, 1, -1)

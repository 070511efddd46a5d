"""Batches of feature vectors, resident or streamed, are the rows that were asked for."""

import numpy as np
import pytest
import torch

from dcdc.data import store as image_store
from dcdc.data.vector_store import as_bytes, open_vector_store

N, D = 40, 7


@pytest.fixture(params=["resident", "streamed"])
def vectors_as(request, tmp_path, monkeypatch):
    """A matrix as it lies in memory, or mapped and too large to be held."""

    def make(dtype, seed=0):
        rows = np.random.default_rng(seed).standard_normal((N, D)).astype(dtype)
        if request.param == "resident":
            return rows
        monkeypatch.setattr(image_store, "_RESIDENT_BYTES", 0)
        path = tmp_path / f"{seed}.npy"
        np.save(path, rows)
        return np.load(path, mmap_mode="r")

    make.is_resident = request.param == "resident"
    return make


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_batch_is_the_rows_asked_for_in_their_order(vectors_as, dtype):
    vectors = vectors_as(dtype)
    store = open_vector_store(vectors, "cpu")
    assert (len(store), store.n_answered, store.is_resident) == (N, N, vectors_as.is_resident)
    indices = torch.tensor([3, 0, 39, 3])
    batch = store.batch(indices)
    assert batch.dtype == torch.float32
    np.testing.assert_array_equal(batch.numpy(), vectors[indices.numpy()].astype(np.float32))


def test_expected_batches_come_as_they_were_announced(vectors_as):
    vectors = vectors_as(np.float32)
    store = open_vector_store(vectors, "cpu")
    batches = torch.randperm(N, generator=torch.Generator().manual_seed(0)).view(5, 8)
    store.expect(batches)
    for batch in batches:
        np.testing.assert_array_equal(store.batch(batch).numpy(), vectors[batch.numpy()])


def test_chunks_are_all_rows_once_or_a_run_of_them(vectors_as):
    vectors = vectors_as(np.float32)
    store = open_vector_store(vectors, "cpu")
    np.testing.assert_array_equal(torch.cat(list(store.in_chunks(9))).numpy(), vectors)
    some = torch.cat(list(store.in_chunks(9, slice(5, 31)))).numpy()
    np.testing.assert_array_equal(some, vectors[5:31])


def test_the_copy_of_a_row_lies_as_many_rows_further_as_there_are_rows(vectors_as):
    vectors, copies = vectors_as(np.float32), vectors_as(np.float32, seed=1)
    store = open_vector_store(vectors, "cpu", copies)
    assert store.has_copies
    assert len(store) == N
    both = store.batch(torch.tensor([4, 4 + N]))
    np.testing.assert_array_equal(both.numpy(), np.stack([vectors[4], copies[4]]))


def test_copies_of_another_type_are_brought_to_that_of_the_vectors():
    vectors = np.eye(3, dtype=np.float32)
    store = open_vector_store(vectors, "cpu", 2 * vectors.astype(np.float16))
    assert store.batch(torch.tensor([4]))[0].tolist() == [0, 2, 0]


def test_rows_that_do_not_lie_in_order_are_copied():
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4).T
    store = open_vector_store(vectors, "cpu")
    assert store.batch(torch.tensor([1]))[0].tolist() == [1, 5, 9]
    plain = np.ascontiguousarray(vectors)
    assert as_bytes(plain).base is not None  # a view: no second copy of a large matrix

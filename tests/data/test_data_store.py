import tracemalloc

import numpy as np
import pytest
import torch

from dcdc.data import DeviceStore, store

RNG = np.random.default_rng(0)


@pytest.fixture(params=[1, 3])
def images(request):
    return RNG.integers(0, 256, (7, 8, 9, request.param), np.uint8)


def test_a_batch_is_the_images_asked_for_in_that_order(images):
    found = DeviceStore(images, "cpu").batch(torch.tensor([6, 0, 6]))
    assert found.dtype == torch.uint8
    assert np.array_equal(found.numpy(), images[[6, 0, 6]].transpose(0, 3, 1, 2))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert found.permute(0, 2, 3, 1).is_contiguous()


def test_chunks_cover_every_image_once_in_order(images):
    kept = DeviceStore(images, torch.device("cpu"))
    chunks = list(kept.in_chunks(3))
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]
    assert torch.equal(torch.cat(chunks), kept.images)
    assert np.array_equal(kept.images.numpy(), images.transpose(0, 3, 1, 2))
    assert kept.images.is_contiguous(memory_format=torch.channels_last)
    assert len(kept) == 7


def test_it_fills_piece_by_piece_from_any_layout(images, monkeypatch):
    monkeypatch.setattr(store, "_CHUNK_BYTES", 2 * images[0].nbytes)
    views = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    assert np.array_equal(DeviceStore(views, "cpu").images.permute(0, 2, 3, 1).numpy(), images)


def test_filling_needs_little_memory_beside_the_tensor(monkeypatch):
    monkeypatch.setattr(store, "_CHUNK_BYTES", 2**16)
    images = np.zeros((2000, 32, 32, 1), np.uint8)
    tracemalloc.start()  # sees numpy's memory, not torch's
    DeviceStore(images, "cpu")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**19 < images.nbytes


@pytest.mark.filterwarnings("error")  # torch warns when it is handed memory that is read-only
def test_a_mapped_file_is_copied_not_aliased(images, tmp_path):
    np.save(tmp_path / "a.npy", images)
    kept = DeviceStore(np.load(tmp_path / "a.npy", mmap_mode="r"), "cpu")
    np.save(tmp_path / "a.npy", images)
    kept.images.zero_()
    assert np.array_equal(np.load(tmp_path / "a.npy"), images)


def test_only_uint8_images_are_kept():
    for wrong in (np.zeros((2, 8, 8, 3)), np.zeros((2, 8, 8), np.uint8)):
        with pytest.raises(AssertionError):
            DeviceStore(wrong, "cpu")

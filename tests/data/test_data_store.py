import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from dcdc.data import store
from dcdc.data.store import DeviceStore, StreamedStore, open_store

RNG = np.random.default_rng(0)


@pytest.fixture(params=[1, 3])
def images(request):
    return RNG.integers(0, 256, (7, 8, 9, request.param), np.uint8)


@pytest.fixture(params=[DeviceStore, StreamedStore])
def kind(request):
    return request.param


def test_a_batch_is_the_images_asked_for_in_that_order(images, kind):
    found = kind(images, "cpu").batch(torch.tensor([6, 0, 6]))
    assert found.dtype == torch.uint8
    assert np.array_equal(found.numpy(), images[[6, 0, 6]].transpose(0, 3, 1, 2))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert found.permute(0, 2, 3, 1).is_contiguous()


def test_chunks_cover_every_image_once_in_order(images, kind):
    kept = kind(images, torch.device("cpu"))
    chunks = list(kept.in_chunks(3))
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]
    assert np.array_equal(torch.cat(chunks).numpy(), images.transpose(0, 3, 1, 2))
    assert all(chunk.is_contiguous(memory_format=torch.channels_last) for chunk in chunks)
    assert (len(kept), kept.n_answered) == (7, 7)


def test_extra_images_follow_the_others_in_batches_and_are_in_no_chunk(images, kind):
    extra = 255 - images[:4]
    kept = kind(images, "cpu", extra)
    assert (len(kept), kept.n_answered) == (11, 7)
    found = kept.batch(torch.tensor([7, 1, 10])).permute(0, 2, 3, 1).numpy()
    assert np.array_equal(found, np.stack([extra[0], images[1], extra[3]]))
    chunks = torch.cat(list(kept.in_chunks(5))).permute(0, 2, 3, 1).numpy()
    assert np.array_equal(chunks, images)


def test_only_a_mapped_set_that_is_large_is_streamed(images, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", images)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert open_store(mapped, "cpu").is_resident
    monkeypatch.setattr(store, "_RESIDENT_BYTES", images.nbytes - 1)
    assert open_store(images, "cpu").is_resident
    for streamed in (open_store(mapped[:, ::-1], "cpu"), open_store(images, "cpu", extra=mapped)):
        assert not streamed.is_resident
    assert np.array_equal(streamed.batch(torch.tensor([8]))[0].permute(1, 2, 0), images[1])


def test_pages_that_were_read_are_given_back(tmp_path):
    """Resident memory is read from the kernel while 200 MB of a map go by, in both ways."""
    images = np.lib.format.open_memmap(
        tmp_path / "a.npy", "w+", np.uint8, (16_000, 64, 64, 3)
    )  # sparse: takes no disk
    kept = StreamedStore(images, "cpu")
    order = torch.randperm(16_000, generator=torch.Generator().manual_seed(0))
    before = peak = resident_bytes()
    for indices in order.view(-1, 100):
        kept.batch(indices)
        peak = max(peak, resident_bytes())
    for _ in kept.in_chunks(500):
        peak = max(peak, resident_bytes())
    assert peak - before < images.nbytes / 2


def resident_bytes():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("resident memory is read from /proc, which this system lacks")
    return int(re.search(r"VmRSS:\s*(\d+) kB", status.read_text())[1]) * 1024


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

import os
import re
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from dcdc.data import store
from dcdc.data.store import DeviceStore, StreamedStore, epoch_batches, open_store
from dcdc.errors import InputError

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
    monkeypatch.setattr(store, "_RESIDENT_BYTES", 3 * images.nbytes)
    assert open_store(mapped, "cpu", n_sharing=3).is_resident
    assert not open_store(mapped, "cpu", n_sharing=4).is_resident
    monkeypatch.setattr(store, "_RESIDENT_BYTES", images.nbytes - 1)
    assert open_store(images, "cpu").is_resident
    for streamed in (open_store(mapped[:, ::-1], "cpu"), open_store(images, "cpu", extra=mapped)):
        assert not streamed.is_resident
    assert np.array_equal(streamed.batch(torch.tensor([8]))[0].permute(1, 2, 0), images[1])


@pytest.mark.parametrize("is_announced", [True, False])
def test_memory_stays_flat_while_a_map_goes_by(tmp_path, is_announced):
    """Resident memory is read from the kernel while 200 MB are gathered and then gone through."""
    images = np.lib.format.open_memmap(
        tmp_path / "a.npy", "w+", np.uint8, (16_000, 64, 64, 3)
    )  # sparse: takes no disk
    kept = StreamedStore(images, "cpu")
    order = torch.randperm(16_000, generator=torch.Generator().manual_seed(0)).view(-1, 100)
    before = peak = resident_bytes()
    if is_announced:
        kept.expect(order)
    for indices in order:
        kept.batch(indices)
        peak = max(peak, resident_bytes())
    for _ in kept.in_chunks(500):
        peak = max(peak, resident_bytes())
    assert peak - before < images.nbytes / 5


def resident_bytes():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("resident memory is read from /proc, which this system lacks")
    return int(re.search(r"VmRSS:\s*(\d+) kB", status.read_text())[1]) * 1024


BATCHES = torch.randint(0, 11, (9, 4), generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=["in memory", "mapped"])
def streamed(request, images, tmp_path):
    """Seven images and four extra ones; no thread stays when a test is done with them."""
    extra = 255 - images[:4]
    if request.param == "mapped":
        np.save(tmp_path / "a.npy", images)
        np.save(tmp_path / "b.npy", extra)
        images, extra = (np.load(tmp_path / name, mmap_mode="r") for name in ("a.npy", "b.npy"))
    kept = StreamedStore(images, "cpu", extra)
    yield kept
    kept.close()
    assert not reading_threads()


@pytest.fixture
def resident(images):
    return DeviceStore(images, "cpu", 255 - images[:4])


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name == "dcdc-read-ahead"]


def test_expected_batches_are_those_of_the_resident_store(streamed, resident):
    found, right = [], []
    for kept, batches in ((streamed, found), (resident, right)):
        for order in (BATCHES, BATCHES.flip(0), BATCHES[:1]):
            kept.expect(order)
            batches += [kept.batch(indices) for indices in order]
        batches.append(kept.batch(BATCHES[3, :2]))  # not announced
        kept.expect(BATCHES[:, :3])
        batches += [kept.batch(indices[:3]) for indices in BATCHES[:5]]
        kept.expect(BATCHES)  # the others are dropped
        batches += [kept.batch(indices) for indices in BATCHES]
    for one, other in zip(found, right, strict=True):  # kept until now, and not overwritten
        assert one.equal(other)
        assert one.is_contiguous(memory_format=torch.channels_last)


def test_expected_indices_need_not_be_readable(streamed, resident):
    """Those on a device are never waited for: on `meta` there is nothing to read."""
    streamed.expect(BATCHES)
    for indices in BATCHES:
        assert streamed.batch(indices.to("meta")).equal(resident.batch(indices))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (BATCHES[0, :3], "3 images was asked for, one of 4 is expected"),
        (BATCHES[0, :3].to("meta"), "3 images was asked for, one of 4 is expected"),
        (BATCHES[1], "other images"),
    ],
)
def test_a_batch_that_is_seen_not_to_be_the_expected_one_is_refused(streamed, wrong, complaint):
    streamed.expect(BATCHES)
    with pytest.raises(ValueError, match=complaint):
        streamed.batch(wrong)


@pytest.mark.parametrize("n_taken", [0, 2, 9])
def test_reading_ahead_ends_with_the_next_expectation_or_the_store(images, n_taken):
    kept = StreamedStore(images, "cpu")
    for _ in range(3):
        kept.expect(BATCHES % 7)
        for indices in BATCHES[:n_taken] % 7:
            kept.batch(indices)
        assert len(reading_threads()) <= 1
    kept.expect(BATCHES[:0])
    assert not reading_threads()
    assert kept.batch(BATCHES[0] % 7).shape[0] == 4
    kept.expect(BATCHES % 7)
    del kept
    assert not reading_threads()


def test_chunks_are_read_ahead_beside_the_batches(streamed, resident):
    streamed.expect(BATCHES)
    for indices in BATCHES[:3]:
        assert streamed.batch(indices).equal(resident.batch(indices))
        chunks = streamed.in_chunks(2)
        assert next(chunks).equal(resident.images[:2])
    assert torch.cat([next(chunks), *chunks]).equal(resident.images[2:7])
    chunks = streamed.in_chunks(2)
    next(chunks)
    chunks.close()
    streamed.close()
    assert not reading_threads()


def test_a_file_cut_short_between_two_batches_is_told_and_can_be_mended(images, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, images)
    kept = StreamedStore(np.load(path, mmap_mode="r"), "cpu")
    order = torch.arange(7).repeat(20, 1)
    kept.expect(order)
    kept.batch(order[0])
    whole = path.read_bytes()
    os.truncate(path, len(whole) // 2)
    with pytest.raises(InputError, match=r"a\.npy was cut short"):
        for indices in order[1:]:  # those read before are still good
            assert kept.batch(indices).permute(0, 2, 3, 1).equal(torch.from_numpy(images))
    assert not reading_threads()
    with pytest.raises(InputError, match=r"a\.npy was cut short"):
        next(kept.in_chunks(7))
    path.write_bytes(whole)
    assert kept.batch(order[0]).permute(0, 2, 3, 1).equal(torch.from_numpy(images))


def test_an_image_that_is_not_there_is_told_in_its_batchs_place(streamed):
    batches = BATCHES.clone()
    batches[2, 1] = 11
    streamed.expect(batches)
    streamed.batch(batches[0])
    streamed.batch(batches[1])
    with pytest.raises(IndexError, match="no image 11 among 11"):
        streamed.batch(batches[2])
    assert streamed.batch(batches[3]).shape[0] == 4


@pytest.mark.parametrize(
    ("shape", "size"),
    [((40, 8, 8, 1), "3 kB"), ((23, 2000, 2000, 2), "184 MB"), ((31, 10_000, 10_000, 1), "3.1 GB")],
)
def test_a_store_says_what_it_is(shape, size, monkeypatch):
    images = np.broadcast_to(np.zeros(1, np.uint8), shape)
    streamed = StreamedStore(images, "cpu")
    assert streamed.description == f"streamed from a map of {size}, 3 batches ahead"
    monkeypatch.setattr(DeviceStore, "__init__", lambda *_: None)
    resident = DeviceStore()
    resident._nhwc = torch.zeros(1, dtype=torch.uint8).expand(shape)
    assert resident.description == f"resident on cpu ({size})"


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


def test_some_rows_in_a_run_come_in_chunks(images, kind):
    kept = kind(images, "cpu")
    found = list(kept.in_chunks(2, slice(1, 6)))
    assert [len(chunk) for chunk in found] == [2, 2, 1]
    assert np.array_equal(torch.cat(found).numpy(), images[1:6].transpose(0, 3, 1, 2))
    assert list(kept.in_chunks(3, slice(4, 4))) == []


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n", "size", "steps"), [(10, 3, 3), (9, 3, 3), (5, 5, 1), (4, 1, 4)])
def test_whole_batches_of_distinct_images(n, size, steps):
    batches = epoch_batches(n, size, seeded())
    assert batches.shape == (steps, size)
    assert batches.dtype == torch.int64
    visited = batches.flatten().tolist()
    assert len(set(visited)) == steps * size
    assert set(visited) <= set(range(n))


def test_the_seed_fixes_the_order_and_every_epoch_has_its_own():
    generator = seeded()
    first, second = epoch_batches(100, 7, generator), epoch_batches(100, 7, generator)
    assert torch.equal(first, epoch_batches(100, 7, seeded()))
    assert not torch.equal(first, second)
    assert not torch.equal(first, epoch_batches(100, 7, seeded(1)))
    assert set(first.flatten().tolist()) != set(second.flatten().tolist())


def test_over_many_epochs_every_image_is_visited():
    generator = seeded()
    visited = set()
    for _ in range(20):
        visited |= set(epoch_batches(10, 4, generator).flatten().tolist())
    assert visited == set(range(10))


@pytest.mark.parametrize("size", [0, -1, 11])
def test_a_batch_that_does_not_fit_is_refused(size):
    with pytest.raises(InputError, match=f"batch size is {size} for 10 images: give one from 1"):
        epoch_batches(10, size, seeded())

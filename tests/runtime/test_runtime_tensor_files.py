import errno
import os
import resource
import stat

import pytest
import torch

from dcdc.runtime.tensor_files import DamagedTensorFileError, load_tensors, save_tensors


def test_tensors_come_back_bit_for_bit(tmp_path):
    tensors = {
        "weights": torch.randn(3, 5),
        "counts": torch.arange(4),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "channels last": torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
    }
    save_tensors(tmp_path / "file", tensors)
    loaded, _ = load_tensors(tmp_path / "file")
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
    assert all(loaded[name].dtype == tensors[name].dtype for name in tensors)


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        save_tensors(tmp_path / "file", {"a": torch.ones(1)})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_a_truncated_file_is_damaged(tmp_path):
    path = tmp_path / "file"
    save_tensors(path, {"a": torch.ones(1000)})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DamagedTensorFileError):
        load_tensors(path)


def test_a_disk_that_takes_no_more_is_an_os_error(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the code is what counts
            save_tensors(tmp_path / "file", {"a": torch.ones(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "file")


def test_a_note_goes_with_them_and_the_same_tensors_are_the_same_bytes(tmp_path):
    tensors, note = {"b": torch.ones(3), "a": torch.arange(2)}, {"dcdc": "1", "n_clusters": 3}
    for number in range(9):
        save_tensors(tmp_path / str(number), tensors, note)
    assert load_tensors(tmp_path / "0")[1] == note
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_a_tensor(tmp_path, step):
    path, tensors = tmp_path / "file", {"b": torch.ones(9), "a": torch.tensor(2.5).bfloat16()}
    save_tensors(path, tensors, {"n_clusters": 3})
    whole = path.read_bytes()
    n_refused, tried = 0, range(0, 8 * len(whole), step)
    for at in tried:
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            found, _ = load_tensors(path)
        except DamagedTensorFileError:
            n_refused += 1
            continue
        assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert n_refused > len(tried) / 2


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DamagedTensorFileError, match="is a pipe"):
        load_tensors(tmp_path / "pipe")

import json
import shutil
from dataclasses import replace
from itertools import count

import pytest
import torch

from dcdc.engine.checkpoints import (
    STATE,
    TENSORS,
    Checkpoint,
    from_bytes,
    list_checkpoints,
    load_latest,
    save_checkpoint,
    to_bytes,
)
from dcdc.runtime import atomic_files
from dcdc.runtime.atomic_files import remove_leftovers
from kills import killed_before


def checkpoint(epoch: int, step: int = 0) -> Checkpoint:
    return Checkpoint(
        epoch, step, {"weights": torch.full((100,), float(epoch))}, {"term_counts": {}, "note": "x"}
    )


def test_the_newest_comes_back_and_the_last_good_ones_are_kept(tmp_path):
    warnings: list[str] = []
    assert load_latest(tmp_path, warnings.append) is None
    for epoch in (8, 9, 10, 11):
        save_checkpoint(tmp_path, checkpoint(epoch), keep=2)
    loaded = load_latest(tmp_path, warnings.append)
    assert (loaded.epoch, loaded.step, loaded.extra) == (11, 0, {"term_counts": {}, "note": "x"})
    assert torch.equal(loaded.tensors["weights"], torch.full((100,), 11.0))
    assert [path.name[:11] for path in list_checkpoints(tmp_path)] == ["epoch-00010", "epoch-00011"]
    assert warnings == []


def test_a_step_within_an_epoch_is_newer_than_the_epoch(tmp_path):
    for step in (0, 7):
        save_checkpoint(tmp_path, checkpoint(3, step), keep=2)
    assert load_latest(tmp_path, pytest.fail).step == 7


def test_they_follow_each_other_by_number(tmp_path):
    for epoch in (9, 99_999, 100_000, 100_001):
        save_checkpoint(tmp_path, checkpoint(epoch), keep=2)
    for step in (999_999, 1_000_000):
        save_checkpoint(tmp_path, checkpoint(100_001, step), keep=2)
    assert load_latest(tmp_path, pytest.fail).step == 1_000_000
    assert [path.name for path in list_checkpoints(tmp_path)] == [
        "epoch-100001-step-999999",
        "epoch-100001-step-1000000",
    ]


@pytest.mark.parametrize("can_exchange", [True, False], ids=["", "without an exchange"])
def test_killed_anywhere_while_it_is_written_again_one_of_a_step_is_there(
    tmp_path, monkeypatch, can_exchange
):
    """A file system of a network has no exchange: the one set aside comes back."""
    if not can_exchange:
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    found = set()
    for number in count(1):
        shutil.rmtree(tmp_path)
        save_checkpoint(tmp_path, checkpoint(3), keep=1)

        def write_again() -> None:
            again = replace(checkpoint(3), extra={"term_counts": {}, "note": "again"})
            save_checkpoint(tmp_path, again, keep=1)

        was_killed = killed_before(number, write_again, tmp_path)
        if not can_exchange:
            remove_leftovers(tmp_path)
        found.add(load_latest(tmp_path, pytest.fail).extra["note"])
        if not was_killed:
            break
        write_again()
        assert [path.name for path in tmp_path.iterdir()] == ["epoch-00003-step-000000"]
        assert load_latest(tmp_path, pytest.fail).extra["note"] == "again"
    assert found == {"x", "again"}


def truncate(path):
    (path / TENSORS).write_bytes((path / TENSORS).read_bytes()[:-8])


def flip_a_bit(path):
    content = bytearray((path / TENSORS).read_bytes())
    content[-1] ^= 1
    (path / TENSORS).write_bytes(content)


def lose_the_tensors(path):
    (path / TENSORS).unlink()


def cut_the_state(path):
    (path / STATE).write_text((path / STATE).read_text()[:20])


def lose_a_key(path):
    state = json.loads((path / STATE).read_text())
    del state["sha256"]
    (path / STATE).write_text(json.dumps(state))


def come_from_the_future(path):
    state = json.loads((path / STATE).read_text()) | {"format": 99}
    (path / STATE).write_text(json.dumps(state))


@pytest.mark.parametrize(
    "damage",
    [truncate, flip_a_bit, lose_the_tensors, cut_the_state, lose_a_key, come_from_the_future],
)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(tmp_path, damage):
    save_checkpoint(tmp_path, checkpoint(1), keep=3)
    damage(save_checkpoint(tmp_path, checkpoint(2), keep=3))
    warnings: list[str] = []
    assert load_latest(tmp_path, warnings.append).epoch == 1
    assert len(warnings) == 1
    assert "epoch-00002" in warnings[0]
    assert "falling back" in warnings[0]


def test_a_half_written_checkpoint_is_not_taken_for_one_and_is_cleared(tmp_path):
    half = tmp_path / ".epoch-00002-step-000000.77.partial"
    half.mkdir()
    (half / TENSORS).write_bytes(b"half")
    assert load_latest(tmp_path, pytest.fail) is None
    save_checkpoint(tmp_path, checkpoint(1), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-00001-step-000000"]


def test_a_write_that_fails_leaves_the_older_ones(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, checkpoint(1), keep=1)

    def full_disk(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dcdc.engine.checkpoints.save_tensors", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, checkpoint(2), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-00001-step-000000"]


def test_a_checkpoint_travels_as_bytes():
    tensors = {"weight": torch.rand(3, 2), "generator": torch.Generator().get_state()}
    sent = Checkpoint(3, 7, tensors, {"n_images": 48, "line": "a\nb"})
    came = from_bytes(to_bytes(sent))
    assert (came.epoch, came.step, came.extra) == (3, 7, sent.extra)
    assert all(torch.equal(came.tensors[name], tensor) for name, tensor in tensors.items())

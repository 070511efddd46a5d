import json

from dcdc.engine.history import append_history, read_history, rewind_history


def test_lines_come_back_in_order(tmp_path):
    path = tmp_path / "history.jsonl"
    assert read_history(path) == []
    for epoch in (1, 2, 3):
        append_history(path, {"epoch": epoch, "seconds": 1.5, "loss": 1 / epoch})
    assert read_history(path) == [{"epoch": e, "seconds": 1.5, "loss": 1 / e} for e in (1, 2, 3)]
    assert [json.loads(line)["epoch"] for line in path.read_text().splitlines()] == [1, 2, 3]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "history.jsonl"
    append_history(path, {"epoch": 1, "seconds": 1.5})
    with path.open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert read_history(path) == [{"epoch": 1, "seconds": 1.5}]
    rewind_history(path, 1)
    append_history(path, {"epoch": 2, "seconds": 1.5})
    assert read_history(path) == [{"epoch": 1, "seconds": 1.5}, {"epoch": 2, "seconds": 1.5}]


def test_rewinding_drops_what_a_resumed_run_writes_again(tmp_path):
    path = tmp_path / "history.jsonl"
    for epoch in (1, 2, 3):
        append_history(path, {"epoch": epoch, "seconds": 1.5})
    rewind_history(path, 1)
    assert read_history(path) == [{"epoch": 1, "seconds": 1.5}]

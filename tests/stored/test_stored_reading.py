import json
import os
from pathlib import Path

import pytest

from dcdc.errors import InputError
from dcdc.stored.reading import (
    DamagedFileError,
    StoredCsv,
    StoredJson,
    StoredLines,
    parse_json,
    sealed,
)
from dcdc.stored.schema import (
    Anything,
    Flag,
    ListOf,
    MapOf,
    Maybe,
    Number,
    OneOf,
    Record,
    Row,
    Text,
    Unfit,
    Whole,
)

SCHEMA = Record(
    {"epoch": Whole(1), "name": Text()},
    {
        "loss": Number(),
        "scores": Maybe(MapOf(Number())),
        "sizes": ListOf(Whole(), length=2),
        "frozen": Flag(),
        "format": OneOf((1, 2)),
        "shape": Row((Whole(1, 9), Text())),
        "deep": Anything(),
    },
)
STORED = StoredJson("state.json", SCHEMA, "remove it", most_bytes=10_000)
LINES = StoredLines("lines.jsonl", SCHEMA, "remove it", most_bytes=10_000)
GOOD = {
    **{"epoch": 3, "name": "ü", "loss": 0.1, "scores": {"acc": 1}, "sizes": [4, 0]},
    **{"frozen": True, "format": 2, "shape": [9, "x"], "deep": [[{}]], "added later": None},
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state.json"


def refused(read, file: Path) -> str:
    with pytest.raises(DamagedFileError) as told:
        read(file)
    assert isinstance(told.value, InputError)
    message = str(told.value)
    assert str(file) in message
    assert message.endswith("remove it")
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    return message


def test_what_fits_comes_back_with_a_check_sum_and_without(file):
    for text in (STORED.text(GOOD), json.dumps(GOOD)):
        file.write_text(text)
        assert STORED.read(file) == GOOD


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("epoch", 0, "epoch is 0, it should be a whole number of at least 1"),
        ("epoch", True, "epoch is true, it should be a whole number"),
        ("epoch", 3.0, "epoch is 3.0"),
        ("epoch", 2**63, "epoch is 9223372036854775808"),
        ("name", None, "name is null, it should be a text"),
        ("loss", "low", 'loss is "low", it should be a number'),
        ("scores", {"acc": []}, "scores.acc is a list of 0, it should be a number"),
        ("sizes", [1], "sizes is a list of 1, it should be a list of 2"),
        ("sizes", [1, -1], r"sizes\[1\] is -1"),
        ("frozen", 1, "frozen is 1, it should be true or false"),
        ("format", True, "format is true, it should be 1 or 2"),
        ("shape", [10, "x"], r"shape\[0\] is 10, it should be a whole number from 1 to 9"),
        ("shape", {}, "shape is an object, it should be a list of 2"),
        ("name", "x" * 9000, None),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_its_key(file, key, value, told):
    file.write_text(json.dumps(GOOD | {key: value}))
    if told is None:
        assert STORED.read(file)[key] == value
        return
    with pytest.raises(DamagedFileError, match=f"state.json: {told}"):
        STORED.read(file)
    refused(STORED.read, file)


def test_a_key_that_is_missing_is_named(file):
    file.write_text('{"epoch": 1}')
    assert "state.json: name is missing" in refused(STORED.read, file)


TEXT = json.dumps(GOOD, ensure_ascii=False)
NO_JSON = {
    "nothing": b"",
    "half": TEXT[:-9].encode(),
    "other kind": b"[1]",
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-32": TEXT.encode("utf-32"),
    "Latin-1": TEXT.encode("latin-1"),
    "byte order mark": TEXT.encode("utf-8-sig"),
    "zeros": bytes(100),
    "NaN": b'{"epoch": 1, "name": "", "loss": NaN}',
    "infinity": b'{"epoch": 1, "name": "", "deep": -Infinity}',
    "1e999": b'{"epoch": 1, "name": "", "deep": [1e999]}',
    "5,000 digits": b'{"epoch": 1, "name": "", "deep": %s}' % (b"7" * 5000),
    "200 digits": b'{"epoch": 1, "name": "", "deep": %s}' % (b"7" * 200),
    "4,000 deep": b"[" * 4000 + b"]" * 4000,
    "400 deep": b'{"epoch": 1, "name": "", "deep": %s}' % (b"[" * 400 + b"]" * 400),
    "too long": b'{"epoch": 1, "name": "%s"}' % (b"x" * 10_000),
}


@pytest.mark.parametrize("content", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_json_within_bounds_is_one_line(file, content):
    file.write_bytes(content)
    refused(STORED.read, file)


def test_only_a_regular_file_is_read(file, tmp_path):
    refused(STORED.read, file)
    os.mkfifo(file)
    assert "is a pipe, not a file" in refused(STORED.read, file)
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "is a device, not a file" in refused(STORED.read, file)
    assert "is a folder, not a file" in refused(STORED.read, tmp_path)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text(STORED.text(GOOD))
    assert STORED.read(file) == GOOD  # people link files, and may


def test_no_flipped_bit_changes_a_value():
    whole = json.dumps(sealed(GOOD), indent=1).encode()
    n_same = 0
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        try:
            found = STORED.checked(parse_json(bytes(flipped)))
        except Unfit:
            continue
        n_same += 1  # of a space, or of the word checksum itself
        assert {key: found[key] for key in GOOD} == GOOD
    assert n_same < len(whole)


def test_what_can_be_made_again_needs_its_check_sum(file):
    strict = StoredJson("state.json", SCHEMA, "remove it", needs_checksum=True)
    file.write_text(strict.text(GOOD))
    assert strict.read(file) == GOOD
    file.write_text(json.dumps(GOOD))
    assert "has no checksum" in refused(strict.read, file)


def test_lines_come_back_and_one_cut_short_is_left_out(file):
    lines = [{"epoch": n, "name": ""} for n in (1, 2, 3)]
    content = "".join(map(LINES.text, lines))
    last = len(LINES.text(lines[-1]))
    for cut in range(last + 1):
        file.write_text(content[: len(content) - cut])
        assert LINES.lines(file) == (lines if cut <= 1 else lines[:2])


def test_a_damaged_line_is_refused_by_its_number_wherever_its_bit_is(file):
    lines = [{"epoch": n, "name": ""} for n in (1, 2, 3)]
    whole = "".join(map(LINES.text, lines)).encode()
    n_refused, tried = 0, range(0, 8 * len(whole), 5)
    for at in tried:
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        file.write_bytes(flipped)
        try:
            found = LINES.lines(file)
        except DamagedFileError as told:
            n_refused += 1
            number = told.problem.partition("line ")[2].partition(" ")[0]
            wanted = 1 + whole[: at // 8].count(b"\n")
            if int(number) != wanted:
                raise AssertionError((at, told)) from None
            continue
        assert [{"epoch": line["epoch"], "name": line["name"]} for line in found] == lines
    assert n_refused > 0.8 * len(tried)


def test_a_first_line_of_its_own_kind_and_good_lines_after_it(file):
    header = StoredJson("header", Record({"format": Whole(1)}), "")
    lines = [{"epoch": n, "name": ""} for n in (1, 2, 3)]
    head = {"format": 4, "meaning": "m"}
    file.write_text(header.text(head) + "".join(map(LINES.text, lines)))
    assert LINES.headed_lines(file, header) == (head, lines)
    file.write_text(header.text(head) + LINES.text(lines[0]) + "\n" + LINES.text(lines[1]))
    assert LINES.headed_lines(file, header) == (head, lines[:1])
    for content in ("", "[]\n", '{"format": 0}\n', header.text(head).replace("4", "5")):
        file.write_text(content)
        assert LINES.headed_lines(file, header) == (None, [])
    file.unlink()
    os.mkfifo(file)
    assert LINES.headed_lines(file, header) == (None, [])


CSV = StoredCsv("skipped.csv", ("name", "reason"), "remove it")


def test_a_table_of_texts_comes_back(file):
    file.write_text('name,reason\n"a ""b"",\nc",empty\n', newline="")
    assert CSV.read(file) == [{"name": 'a "b",\nc', "reason": "empty"}]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"other,columns\na,b\n", b"name,reason\nalone\n", b"name,reason\na,b,c\n"),
        *(b'name,reason\n"open,b\n', "name,reason\n\xfc,b\n".encode("latin-1")),
        b"name,reason\n" + b"x" * 200_000 + b",b\n",
    ],
)
def test_a_table_that_is_damaged_is_one_line(file, content):
    file.write_bytes(content)
    refused(CSV.read, file)

"""Work that is cut anywhere goes on with whole blocks alone."""

import json

import pytest

from dcdc.errors import InputError
from dcdc.prediction.work_folder import opened_work
from dcdc.stored.files import JOURNAL_HEADER

HEADS = {"rows": b"head\n", "clusters": b""}
MEANING = {"another model": "m", "other images": "i"}


class CutError(Exception):
    pass


def append_blocks(folder, numbers):
    with folder.appending() as appender:
        for number in numbers:
            appender.append(
                {"rows": b"row %d\n" % number * 10, "clusters": bytes([number] * 10)},
                n_read=11,
                n_kept=10,
                n_out_of_distribution=1,
                skipped=[(number, "torn")],
            )


@pytest.fixture
def begun(tmp_path):
    """Three blocks, then a stop."""
    path = tmp_path / "out.csv.partial"
    with pytest.raises(CutError), opened_work(path, HEADS, MEANING) as folder:
        append_blocks(folder, range(3))
        raise CutError
    return path


def contents(path):
    return {name: (path / name).read_bytes() for name in ("rows", "clusters", "journal")}


def reopened(path):
    """How many blocks were found, and the files after the rest was done."""
    with opened_work(path, HEADS, MEANING) as folder:
        found = len(folder.entries)
        assert folder.n_read == 11 * found
        assert (folder.n_kept, folder.n_out_of_distribution) == (10 * found, found)
        assert folder.skipped == tuple((number, "torn") for number in range(found))
        append_blocks(folder, range(found, 5))
    return found, contents(path)


@pytest.fixture
def undisturbed(tmp_path):
    path = tmp_path / "undisturbed"
    with opened_work(path, HEADS, MEANING) as folder:
        append_blocks(folder, range(5))
    return contents(path)


def test_it_goes_on_where_it_was(begun, undisturbed):
    assert reopened(begun) == (3, undisturbed)


@pytest.mark.parametrize("name", ["rows", "clusters", "journal"])
def test_cut_after_any_byte_it_goes_on_with_whole_blocks(begun, undisturbed, name):
    whole = contents(begun)
    n_bytes = len(whole[name])
    for length in (*range(0, n_bytes, 7), n_bytes - 1):
        for each, content in whole.items():
            (begun / each).write_bytes(content[:length] if each == name else content)
        found, after = reopened(begun)
        # A line vouches for its block without the end of the line, too.
        assert (found == 3) == (name == "journal" and length == n_bytes - 1)
        assert after == undisturbed


def test_what_no_line_vouches_for_is_made_again(begun, undisturbed):
    for name, more in (("rows", b"row 3\nro"), ("clusters", b"\3\3"), ("journal", b'{"n_re')):
        with (begun / name).open("ab") as file:
            file.write(more)
    assert reopened(begun) == (3, undisturbed)


@pytest.mark.parametrize("name", ["rows", "clusters"])
def test_a_changed_byte_is_found(begun, undisturbed, name):
    content = bytearray((begun / name).read_bytes())
    content[len(content) // 2] ^= 1
    (begun / name).write_bytes(content)
    assert reopened(begun) == (1, undisturbed)


@pytest.mark.parametrize(
    ("line", "kept"),
    [(0, 0), (2, 1)],
    ids=["the first, which says what it is", "a block's"],
)
@pytest.mark.parametrize("damage", ["[]", "{", "[" * 10**5, "\x00"])
def test_a_damaged_journal_is_good_up_to_the_damage(begun, undisturbed, line, kept, damage):
    lines = (begun / "journal").read_text().splitlines()
    lines[line] = damage
    (begun / "journal").write_text("\n".join(lines) + "\n")
    assert reopened(begun) == (kept, undisturbed)


@pytest.mark.parametrize("line", ['{"n_read": "x"}', "{}", '{"pieces": 3}'])
def test_a_line_of_something_else_vouches_for_nothing(begun, undisturbed, line):
    lines = (begun / "journal").read_text().splitlines()
    (begun / "journal").write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    assert reopened(begun) == (1, undisturbed)


JOURNAL_OF_0_1 = """\
{"format": 1, "meaning": {"another model": "m", "other images": "i"}, "parts": ["clusters", "rows"]}
{"n_read": 11, "n_kept": 10, "n_out_of_distribution": 1, "skipped": [[0, "torn"]], \
"pieces": {"rows": [60, 3316070917], "clusters": [10, 3817498742]}}
"""


def test_a_folder_that_version_0_1_left_is_gone_on_with(tmp_path, undisturbed):
    path = tmp_path / "out.csv.partial"
    path.mkdir()
    (path / "rows").write_bytes(b"head\n" + b"row 0\n" * 10)
    (path / "clusters").write_bytes(bytes(10))
    (path / "journal").write_text(JOURNAL_OF_0_1)
    assert reopened(path) == (1, undisturbed)


def test_other_work_is_refused_and_left_as_it_is(begun):
    before = contents(begun)
    for meaning, told in (
        ({**MEANING, "another model": "n"}, "an earlier start with another model:"),
        ({"another model": "", "other images": ""}, "another model and other images:"),
    ):
        with (
            pytest.raises(InputError, match=f"{told} repeat .*, remove the folder"),
            opened_work(begun, HEADS, meaning),
        ):
            pass
    header = json.loads(before["journal"].splitlines()[0])
    header["format"] = 2
    del header["checksum"]
    (begun / "journal").write_text(JOURNAL_HEADER.text(header))
    with (
        pytest.raises(InputError, match="an earlier start with another dcdc"),
        opened_work(begun, HEADS, MEANING),
    ):
        pass
    assert contents(begun)["rows"] == before["rows"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    path = tmp_path / "out.csv.partial"
    path.mkdir()
    (path / "cat.jpg").write_text("mine")
    with (
        pytest.raises(InputError, match=r"holds cat.jpg, which no prediction left there"),
        opened_work(path, HEADS, MEANING),
    ):
        pass
    assert (path / "cat.jpg").read_text() == "mine"


def test_two_at_once_are_one_too_many(begun):
    with (
        opened_work(begun, HEADS, MEANING),
        pytest.raises(InputError, match="another process is working in"),
        opened_work(begun, HEADS, MEANING),
    ):
        pass


def test_without_a_block_nothing_stays(tmp_path):
    with pytest.raises(CutError), opened_work(tmp_path / "new", HEADS, MEANING):
        raise CutError
    assert list(tmp_path.iterdir()) == []

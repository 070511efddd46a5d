import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcdc.errors import Interrupted
from dcdc.printable import counted, file_name, shown, shown_lines, utf8_name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\x1b]0;owned\x07.png", r"a\x1b]0;owned\x07.png"),
        ("a\nb\tc\r", r"a\x0ab\x09c\x0d"),
        ("\x9b2J", r"\x9b2J"),
        ("cod\u202egnp.exe", r"cod\u202egnp.exe"),
        ("\udcff", r"\udcff"),
        ("Käse 猫 \N{FAMILY}", "Käse 猫 \N{FAMILY}"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text, told):
    assert shown(text) == told
    assert shown(text).isprintable()


def test_lines_stay_lines():
    assert shown_lines("a\n\x1bb") == "a\n\\x1bb"


names = st.binary(min_size=1, max_size=12).map(os.fsdecode) | st.lists(
    st.sampled_from(["\\", "x", "8", "f", "u", "d", "\udcff", "\ud800", "猫"]), min_size=1
).map("".join)


@given(names)
def test_every_name_can_be_written_and_read_back(name):
    written = utf8_name(name)
    assert written.encode("utf-8")
    assert file_name(written) == name


def test_usual_names_stay_as_they_are():
    for name in ("a/b.png", "C:\\x\\y.png", "\\xyz", "Käse.png"):
        assert utf8_name(name) == name


def test_one_is_singular_and_thousands_have_their_comma():
    assert [counted(n, "image") for n in (0, 1, 2, 1200)] == [
        *("0 images", "1 image", "2 images", "1,200 images")
    ]
    assert counted(1, "class", "classes") == "1 class"
    assert counted(3, "class", "classes") == "3 classes"


def test_whoever_stops_after_one_epoch_is_told_so():
    assert str(Interrupted("SIGINT", 1)) == "stopped by SIGINT after 1 epoch"

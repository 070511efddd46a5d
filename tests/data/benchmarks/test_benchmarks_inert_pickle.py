import copyreg
import os
import pickle
import random
import struct
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from dcdc.data.benchmarks.inert_pickle import load_inert
from dcdc.errors import InputError

ARRAY = np.array([[0, 1, 254], [255, 10, 39]], np.uint8)
# as cPickle of Python 2 wrote CIFAR: binary strings, numpy's old path, numbers from 1
PYTHON_2 = (
    b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labelsq\x04]q\x05"
    b"(K\x06K\x09eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08"
    b"K\x00\x85U\x01b\x87Rq\x09(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b"
    b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T\x06\x00\x00\x00"
    + ARRAY.tobytes()
    + b"tbU\x09filenamesq\x0c]q\x0d(U\x05a.pngq\x0eU\x05b.pngq\x0feu."
)
PYTHON_2_TEXT = (
    b"(dp1\nS'labels'\np2\n(lp3\nI6\naI9\nasS'data'\np4\ncnumpy.core.multiarray\n_reconstruct\np5\n"
    b"(cnumpy\nndarray\np6\n(I0\ntS'b'\ntRp7\n(I1\n(I2\nI3\ntcnumpy\ndtype\np8\n(S'u1'\nI0\nI1\n"
    b"tRp9\n(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x01\\xfe\\xff\\n\\''\ntbs."
)
RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
EMPTY_ARRAY = RECONSTRUCT + b"(cnumpy\nndarray\nK\x00\x85U\x01btR"
EXTENSION = 0xF0


def dtype(code=b"U\x02u1", state=b"K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00"):
    return b"cnumpy\ndtype\n(" + code + b"K\x00K\x01tR(" + state + b"tb"


BYTES = dtype()


def array(shape=b"K\x02K\x03\x86", of=BYTES, raw=b"U\x06abcdef"):
    return EMPTY_ARRAY + b"(K\x01" + shape + of + b"\x89" + raw + b"tb."


def text(value):
    """A string of Python 2."""
    return b"T" + struct.pack("<i", len(value)) + value


def read(tmp_path, data):
    path = tmp_path / "data_batch_1"
    path.write_bytes(data)
    return load_inert(path)


def refused(tmp_path, data):
    with pytest.raises(InputError) as caught:
        read(tmp_path, data)
    message = str(caught.value)
    assert str(tmp_path / "data_batch_1") in message
    assert "get it again" in message
    assert message.isprintable()
    return message


@pytest.mark.parametrize("data", [PYTHON_2, PYTHON_2_TEXT])
def test_python_2s_own_pickles(tmp_path, data):
    content = read(tmp_path, data)
    assert content[b"labels"] == [6, 9]
    assert content[b"data"].dtype == np.uint8
    assert np.array_equal(content[b"data"], ARRAY)
    assert content.get(b"filenames", [b"a.png", b"b.png"]) == [b"a.png", b"b.png"]


@pytest.mark.parametrize("path", [b"numpy.core.", b"numpy._core."])
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "values",
    [
        ARRAY,
        np.asfortranarray(ARRAY),
        np.arange(5, dtype=np.int64) - 2,
        np.arange(6, dtype=">f4").reshape(1, 2, 3),
        np.array([True, False]),
    ],
)
def test_python_3s_pickles_of_every_protocol(tmp_path, path, protocol, values):
    content = {b"data": values, b"labels": [1, 2**40], b"filenames": [b"a\xff", "b"], b"none": None}
    data = pickle.dumps(content, protocol)
    if protocol < 4:  # no lengths of names and frames to correct
        data = data.replace(b"numpy._core.", path)
    found = read(tmp_path, data)
    assert np.array_equal(found.pop(b"data"), values)
    del content[b"data"]
    assert found == content
    lone = read(tmp_path, pickle.dumps(values, protocol))
    assert (lone.dtype, lone.tolist()) == (values.dtype, values.tolist())


@pytest.fixture
def evil_npy(tmp_path):
    """A file of numpy's that runs a command when it is loaded."""

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'marker'}",)

    path = tmp_path / "evil.npy"
    np.save(path, np.array([Evil()], object), allow_pickle=True)
    return str(path).encode()


@pytest.fixture
def extension():
    """A code that stands for os.system in every pickle, and is known to the reader already."""
    copyreg.add_extension("os", "system", EXTENSION)
    pickle.loads(b"\x80\x02\x82" + bytes([EXTENSION]) + b".")
    yield
    copyreg.remove_extension("os", "system", EXTENSION)
    copyreg.clear_extension_cache()


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (b"cos\nsystem\n(%(command)stR.", "os.system"),
        (b"cposix\nsystem\n(%(command)stR.", "posix.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93(%(command)stR.", "os.system"),
        (b"(%(command)sios\nsystem\n.", "os.system"),
        (b"(cos\nsystem\n%(command)so.", "os.system"),
        (b"c__builtin__\neval\n(%(expression)stR.", "__builtin__.eval"),
        (b"cbuiltins\nexec\n(%(expression)stR.", "builtins.exec"),
        (b"cnumpy\nload\n(%(file)sNI01\ntR.", "numpy.load"),
        (b"\x80\x04\x8c\x05numpy\x8c\x04load\x93(%(file)sN\x88tR.", "numpy.load"),
        (b"\x80\x04\x8c\x02os\x8c\x0bpath.os.sys\x930cos\nsystem\n(%(command)stR.", "os.path.os"),
        (b"\x80\x02\x82\xf0%(command)s\x85R.", "0x82"),
        (b"\x80\x02\x83\xf0\x00%(command)s\x85R.", "0x83"),
        (b"\x80\x02\x84\xf0\x00\x00\x00%(command)s\x85R.", "0x84"),
        (b"}U\x04datacos\nsystem\n(%(command)stRs.", "os.system"),
    ],
)
def test_nothing_is_run(tmp_path, evil_npy, attack, named):
    marker = tmp_path / "marker"
    data = attack % {
        b"command": text(f"touch {marker}".encode()),
        b"expression": text(f"open({str(marker)!r}, 'w')".encode()),
        b"file": text(evil_npy),
    }
    assert named in refused(tmp_path, data)
    assert not marker.exists()
    pickle.loads(data, encoding="latin1")  # the attack is a real one
    assert marker.exists()


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (RECONSTRUCT + b"(cos\nsystem\nK\x00\x85U\x01btR.", "os.system"),
        (RECONSTRUCT + b"(cnumpy\ndtype\nK\x00\x85U\x01btR.", "kind"),
        (b"cnumpy\nndarray\n(K\x09\x85tR.", "out of nothing"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0ddtype.__new__\x93.", "numpy.dtype.__new__"),
        (b"\x80\x04\x8c\x01\n\x8c\x02\xc3\xbc\x93.", "never run"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", ""),  # NEWOBJ
        (EMPTY_ARRAY + b".", "never filled"),
        (b"}U\x01a" + EMPTY_ARRAY + b"s.", "never filled"),
        (EMPTY_ARRAY + b")R.", ""),  # calls the array
        (EMPTY_ARRAY + b"}U\x06valuesK\x01sb.", ""),
        (EMPTY_ARRAY + b"N}U\x06valuesK\x01s\x86b.", ""),
        (array(of=dtype(b"U\x02O8")), "type 'O8'"),
        (array(of=dtype(b"U\x02S6")), "type 'S6'"),
        (array(of=dtype(b"K\x08")), "type 8"),
        (array(of=dtype(state=b"K\x03U\x01|N(U\x01atN")), "records"),
        (array(of=dtype(state=b"K\x03U\x01!NNN")), "byte order"),
        (array(of=b"N"), "plain bytes"),
        (array(raw=b"]K\x00a"), "plain bytes"),
        (array(raw=b"U\x05abcde"), "another shape"),
        (array(raw=b"U\x07abcdefg"), "another shape"),
        (array(shape=b"J\xfe\xff\xff\xffJ\xfd\xff\xff\xff\x86"), "another shape"),
        (array(shape=b"K\x00K\x03\x86", raw=b"U\x00"), "another shape"),
        (array(shape=b"]K\x06a"), "plain shape"),
        (b"c_codecs\nencode\n(V\xe9\nVutf-8\ntR.", "latin1"),
        (b"c_codecs\nencode\n(cnumpy\nndarray\nVlatin1\ntR.", "latin1"),
        (b"Pcos.system\n.", "outside of itself"),
        (b"U\x01aQ.", "outside of itself"),
        (b"\x80\x05\x97.", ""),  # NEXT_BUFFER
        (b"", "cut short"),
        (b"not a pickle", "opcode"),
        (b"\xff", "0xff"),
    ],
)
def test_stand_ins_build_plain_arrays_alone(tmp_path, data, named):
    assert named in refused(tmp_path, data)


@pytest.mark.parametrize("name", [b"numpy\ndtype\n", b"numpy\nndarray\n", RECONSTRUCT[1:]])
@pytest.mark.parametrize("state", [b"}%ss", b"N}%ss\x86"])
def test_stand_ins_cannot_be_changed(tmp_path, name, state):
    change = state % b"U\x07_answerK\x01" + b"b."
    assert "changes a function" in refused(tmp_path, b"c" + name + change)
    assert np.array_equal(read(tmp_path, PYTHON_2)[b"data"], ARRAY)


@pytest.mark.parametrize("data", [PYTHON_2, PYTHON_2_TEXT, pickle.dumps({b"data": ARRAY}, 5)])
def test_every_truncation_is_told(tmp_path, data):
    for length in range(len(data)):
        refused(tmp_path, data[:length])


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("data", [PYTHON_2, PYTHON_2_TEXT, pickle.dumps({b"data": ARRAY}, 5)])
def test_damage_is_told_or_harmless(tmp_path, data):
    draw = random.Random(0)
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(len(data))] = draw.randrange(256)
        with suppress(InputError):
            read(tmp_path, damaged)


@pytest.mark.parametrize(
    "data",
    [
        array(shape=b"J\x00\x00\x10\x00J\x00\x00\x10\x00\x86"),
        array(shape=b"\x8b\x09\x00\x00\x00" + b"\xff" * 8 + b"\x00\x85"),
        b"K\x01r" + struct.pack("<I", 2**23) + b".",
        b"K\x01p8388608\n.",
        b"\x80\x05\x96" + struct.pack("<Q", 2**27) + b"abc.",
        b"\x80\x05\x8e" + struct.pack("<Q", 2**27) + b"abc.",
        b"\x80\x03B" + struct.pack("<I", 2**27) + b"abc.",
        b"T" + struct.pack("<i", 2**27) + b"abc.",
        b"T" + struct.pack("<i", -1) + b"abc.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**27) + b"K\x01.",
    ],
)
def test_what_is_declared_is_not_allocated(tmp_path, data):
    tracemalloc.start()
    try:
        refused(tmp_path, data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_inert(tmp_path / "gone")
    with (tmp_path / "data_batch_1").open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(InputError, match="too big"):
        load_inert(tmp_path / "data_batch_1")


def named_twice_over(levels, opening=b"U\x01x", pair=b"\x86"):
    """A value of two that are one value of two, ...: 2^levels values in a few bytes."""
    data = opening
    for level in range(levels):
        data += b"q" + bytes([level]) + b"h" + bytes([level]) + pair
    return data


BOMB = named_twice_over(60)
LISTS = named_twice_over(60, pair=b"q\xfe0](h\xfeh\xfee")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"}" + BOMB + b"K\x01s.", "a key"),
        (b"}(" + BOMB + b"K\x01u.", "a key"),
        (b"(" + BOMB + b"K\x01d.", "a key"),
        (b"}(K\x01" + BOMB + b"u.", "more than any"),
        (b"](" + BOMB + b"e.", "more than any"),
        (BOMB + b".", "more than any"),
        (b"\x8f(" + BOMB + b"\x90.", "opcode"),
        (b"(" + BOMB + b"\x91.", "opcode"),
        (array(of=dtype(code=BOMB)), "no text"),
        (array(shape=BOMB), "shape"),
        (array(raw=BOMB), "without plain bytes"),
        (b"]" * 1 + b"](" * 3000 + b"e" * 3000 + b".", "more than any"),
        (b"]q\x01h\x01a.", "more than any"),
    ],
)
def test_few_bytes_that_stand_for_endless_values(tmp_path, data, why):
    began = time.monotonic()
    assert why in refused(tmp_path, data)
    assert time.monotonic() - began < 5

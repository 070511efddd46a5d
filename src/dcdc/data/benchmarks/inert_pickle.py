"""Pickles of plain values and numeric arrays, read so that nothing in them is ever executed.

A pickle is a program: it names functions and calls them. Here the few names that an array needs
lead to stand-ins, every other name is refused, and what stands in can be called but not changed.
A pickle may also name one value many times over, so that a few bytes stand for more values than can
be counted: only plain keys are hashed, and what comes out is counted before anybody looks at it.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

_MOST_BYTES = 2**30  # the biggest original, CIFAR-100's train, has 155 MB
_MOST_VALUES = 2**22  # the biggest original has 150,000
_DEEPEST = 8
_NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_OPCODES = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
_OF_SETS = ("EMPTY_SET", "ADDITEMS", "FROZENSET")
_LENGTH_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}


def load_inert(path: Path) -> Any:
    """Plain values; arrays where they are the whole, or values of a dict that is the whole.

    Strings of Python 2 come as bytes. An array deeper down stays a stand-in.
    """
    try:
        if require_regular(path).stat().st_size > _MOST_BYTES:
            raise pickle.UnpicklingError("it is far too big")
        data = path.read_bytes()
        _check_opcodes(data)
        content = _InertUnpickler(io.BytesIO(data), encoding="bytes").load()
        _check_extent(content)
        return _with_arrays(content)
    except Exception as error:  # a damaged pickle makes the reader raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{path} cannot be read as a pickle of plain arrays ({reason:.200}): get it again"
        ) from None


class _InertUnpickler(pickle._Unpickler):
    """The reader in Python: the one in C hashes any key without asking."""

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.stack.append({})
        self._fill(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._fill([key, value])

    def load_setitems(self) -> None:
        self._fill(self.pop_mark())

    def _fill(self, items: list[Any]) -> None:
        found = self.stack[-1]
        if type(found) is not dict:
            raise pickle.UnpicklingError("it fills something else than a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes, int):
                raise pickle.UnpicklingError("it has a key that is no plain value")
            found[key] = value

    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _STAND_INS:
            asked = f"{module}.{name}"[:80]
            raise pickle.UnpicklingError(f"it asks for {asked!a}, which is never run")
        return _STAND_INS[module, name]

    def persistent_load(self, _pid: Any, /) -> Any:
        raise pickle.UnpicklingError("it asks for an object outside of itself")


def _check_opcodes(data: bytes) -> None:
    """What the reader does not let us decide: lengths, places to remember, extension codes."""
    position = n_opcodes = 0
    while data[position : position + 1] != pickle.STOP:
        if position >= len(data):
            raise pickle.UnpicklingError("it is cut short")
        opcode = _OPCODES.get(data[position])
        # Extensions may go round find_class, and sets hash whatever they hold.
        if opcode is None or opcode.name.startswith("EXT") or opcode.name in _OF_SETS:
            raise pickle.UnpicklingError(f"it has the opcode {data[position]:#04x}")
        start, n_opcodes = position + 1, n_opcodes + 1
        position = _end_of_argument(data, start, opcode)
        if opcode.name == "FRAME" and int.from_bytes(data[start:position], "little") > len(data):
            raise pickle.UnpicklingError("it is cut short")
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT"):
            argument = data[start:position]
            place = int(argument) if opcode.name == "PUT" else int.from_bytes(argument, "little")
            if not 0 <= place <= n_opcodes:  # the reader would make room for all those before it
                raise pickle.UnpicklingError(f"it remembers a value as number {place}")


def _end_of_argument(data: bytes, start: int, opcode: pickletools.OpcodeInfo) -> int:
    if opcode.arg is None:
        return start
    if opcode.arg.n == pickletools.UP_TO_NEWLINE:
        end = data.index(b"\n", start) + 1
        return data.index(b"\n", end) + 1 if opcode.name in ("GLOBAL", "INST") else end
    if opcode.arg.n >= 0:
        return start + opcode.arg.n
    text = start + _LENGTH_BYTES[opcode.arg.n]
    return text + int.from_bytes(data[start:text], "little")


class _StandIn:
    """Answers for a name of numpy's; without a place where a pickle could put anything."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer

    def __call__(self, *arguments: Any) -> Any:
        return self._answer(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise pickle.UnpicklingError("it changes a function")


class _Dtype:
    __slots__ = ("plain",)

    def __init__(self, code: Any, _align: Any = False, _copy: Any = True) -> None:
        text = code.decode("latin1") if isinstance(code, bytes) else code
        if not isinstance(text, str) or text not in _NUMBERS:
            shown = ascii(text)[:40] if isinstance(text, str | int) else "that is no text"
            raise pickle.UnpicklingError(f"it has an array of type {shown}")
        self.plain = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        _version, order, *structure = state[:5]
        if order in (b">", ">", b"<", "<"):
            self.plain = self.plain.newbyteorder(">" if order in (b">", ">") else "<")
        elif order not in (b"|", "|"):
            raise pickle.UnpicklingError("it has an unknown byte order")
        if structure != [None, None, None]:
            raise pickle.UnpicklingError("it has an array of records")


class _Array:
    """An array to be: numpy's pickles make an empty one first and fill it later."""

    __slots__ = ("values",)

    def __init__(self, values: NDArray[Any] | None = None) -> None:
        self.values = values

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, raw = state
        self.values = _view(raw, dtype, shape, "F" if is_fortran else "C")


def _view(raw: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """No copy; a shape that the bytes do not fill is refused before anything is made of it."""
    if not isinstance(raw, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("it has an array without plain bytes")
    if not isinstance(shape, tuple) or not 1 <= len(shape) <= 8:
        raise pickle.UnpicklingError("it has an array without a plain shape")
    if not all(type(side) is int and 1 <= side <= len(raw) for side in shape):
        raise pickle.UnpicklingError("it has an array of another shape than its bytes")
    if math.prod(shape) * dtype.plain.itemsize != len(raw):
        raise pickle.UnpicklingError("it has an array of another shape than its bytes")
    if order not in ("C", "F"):
        raise pickle.UnpicklingError("it has an array in an unknown order")
    return np.frombuffer(raw, dtype.plain).reshape(shape, order=order)


def _reconstruct(kind: Any, _shape: Any, _code: Any) -> _Array:
    if kind is not _NDARRAY:
        raise pickle.UnpicklingError("it has an array of a kind of its own")
    return _Array()


def _from_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    return _Array(_view(raw, dtype, shape, order))


def _encode(text: Any, encoding: Any) -> bytes:
    """How Python 3 writes bytes for Python 2."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("it encodes something else than latin1")
    return text.encode("latin1")


def _never_called(*_arguments: Any) -> NoReturn:
    raise pickle.UnpicklingError("it makes an array out of nothing")


_NDARRAY = _StandIn(_never_called)
_STAND_INS = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _StandIn(_Dtype),
    ("numpy.core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("numpy._core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("numpy.core.numeric", "_frombuffer"): _StandIn(_from_buffer),
    ("numpy._core.numeric", "_frombuffer"): _StandIn(_from_buffer),
    ("_codecs", "encode"): _StandIn(_encode),
}


def _check_extent(content: Any) -> None:
    """Counts every value as often as it is named."""
    waiting, n_values = [(content, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        inside = (*value, *value.values()) if isinstance(value, dict) else value
        if not isinstance(inside, list | tuple):
            continue
        n_values += len(inside)
        if depth == _DEEPEST or n_values > _MOST_VALUES:
            raise pickle.UnpicklingError("it holds more than any such file")
        waiting += [(each, depth + 1) for each in inside if isinstance(each, list | tuple | dict)]


def _with_arrays(content: Any) -> Any:
    if isinstance(content, _Array):
        if content.values is None:
            raise pickle.UnpicklingError("it has an array that was never filled")
        return content.values
    if isinstance(content, dict):
        return {
            key: _with_arrays(value) if isinstance(value, _Array) else value
            for key, value in content.items()
        }
    return content

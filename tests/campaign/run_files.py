"""Damaged files of a run folder and of a model folder, read by every verb that reads them."""

import io
import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensor_bytes

from campaign import answers
from campaign.case import Case, fresh_folder
from campaign.ground import Ground, ground
from campaign.mutations import (
    EDITED,
    NO_FILE,
    Damage,
    cut,
    drawing,
    flipped,
    in_place,
    json_values,
    overwritten,
    replaced,
    texts,
)
from campaign.process import Ended, call, run_verb

PREDICT = ("predict", "run", "VECTORS", "--out", "out.csv", "--device", "cpu", "--quiet")
EVALUATE = ("evaluate", "run", "--quiet")
REPORT = ("report", "run", "--quiet")
EXPORT = ("export", "run", "--format", "torch", "--out", "out.pt2")
_READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "config.json": (PREDICT,),
    "metrics.json": (REPORT, EVALUATE),
    "history.jsonl": (REPORT,),
    "names.json": (PREDICT,),
    "model.safetensors": (PREDICT,),
    "assignments.parquet": (EVALUATE, REPORT),
    "sample.npz": (PREDICT, REPORT),
    "map.npz": (REPORT,),
}
"""The first of them meets every damage, the others some of it."""
_SOME = 12


def cases() -> Iterator[Case]:
    made = ground()
    for file, verbs in _READERS.items():
        content = (made.vector_run / file).read_bytes()
        damages = list(_damages(file, content))
        for number, verb in enumerate(verbs):
            for words, changed in damages[:: 1 if number == 0 else _SOME]:
                yield _case(made.vector_run, file, words, changed, verb)
            for words, lay in NO_FILE.items():
                yield _case(made.vector_run, file, words, lay, verb)
    file = "reference.npz"
    content = (made.model / file).read_bytes()
    for words, changed in _damages(file, content):
        yield _case(made.model, file, words, changed, PREDICT)
    for words, lay in NO_FILE.items():
        yield _case(made.model, file, words, lay, PREDICT)


def _case(run: Path, file: str, words: str, damage: Any, verb: tuple[str, ...]) -> Case:
    made = ground()
    answer, makes, changes = _ANSWERS[verb[0]]
    # What can be made again is made again, or done without, as the pages say.
    optional = file in ("metrics.json", "sample.npz", "map.npz", "reference.npz", "names.json")
    # Another table that is whole has another answer.
    optional |= (file == "assignments.parquet" and " of " in words) or words.endswith(EDITED)
    same = _undamaged(run.name, verb)
    return Case(
        name=f"{file} {words}, {verb[0]}",
        prepare=partial(_lay, made, run, file, damage, verb),
        names=(file, "run"),
        answer=answer,
        wanted=None if optional else same,
        makes=makes,
        changes=changes,
        cache=made.cache,
    )


def _lay(
    made: Ground, run: Path, file: str, damage: Any, verb: tuple[str, ...], folder: Path
) -> list[object]:
    shutil.copytree(run, folder / "run", symlinks=True)
    target = folder / "run" / file
    if callable(damage):
        in_place(target, damage)
    elif damage is not None:
        target.write_bytes(damage)
    return [str(made.vectors) if text == "VECTORS" else text for text in verb]


@lru_cache
def _undamaged(run_name: str, verb: tuple[str, ...]) -> Any:
    made = ground()
    run = made.model if run_name == made.model.name else made.vector_run
    with fresh_folder() as folder:
        arguments = _lay(made, run, "config.json", None, verb, folder)
        ended = call(lambda: run_verb(arguments), folder, cache=made.cache, seconds=60)
        assert ended.code == 0, ended.err
        return _ANSWERS[verb[0]][0](folder, ended)


def _page(folder: Path, ended: Ended) -> bool:  # noqa: ARG001
    """The page is there; what it shows is tested with the report."""
    return (folder / "run" / "report.html").stat().st_size > 1000


_ANSWERS: dict[str, tuple[Callable[[Path, Ended], Any], tuple[str, ...], tuple[str, ...]]] = {
    "predict": (answers.file_digest("out.csv"), ("out.csv",), ()),
    "evaluate": (answers.said, (), ()),
    "report": (
        _page,
        ("run/map.npz", "run/sample.npz", "run/figures/*"),
        ("run/report.html", "run/figures/*", "run/figures", "run/map.npz", "run/sample.npz"),
    ),
}


def _damages(file: str, content: bytes) -> Iterator[Damage]:
    draw = drawing("run files", file)
    yield from cut(content, 8)
    yield from flipped(content, 32, draw)
    yield from overwritten(content, 6, draw)
    yield from replaced(content)
    if file.endswith((".json", ".jsonl")):
        yield from texts(content)
    if file.endswith(".json"):
        yield from json_values(content, None if file == "names.json" else FEWER)
    if file.endswith(".jsonl"):
        yield from _lines(content)
    if file.endswith(".npz"):
        yield from arrays(content)
    if file.endswith(".parquet"):
        yield from tables(content)
    if file.endswith(".safetensors"):
        yield from tensors(content, every=2)


FEWER: dict[str, Any] = {
    "null": None,
    "NaN": float("nan"),
    "10^400": 10**400,
    "a text": "nonsense",
    "a lone surrogate": "\ud800",
    "a list of a list": [[1]],
    "an object": {"a": 1},
    "-1": -1,
}


def _lines(content: bytes) -> Iterator[Damage]:
    """The last line's values."""
    *before, last = content.splitlines(keepends=True)
    for words, changed in json_values(last, FEWER):
        yield f"last line, {words}", b"".join(before) + changed + b"\n"


def arrays(content: bytes) -> Iterator[Damage]:
    """Each array absent, of another type, shape or with numbers that are none; and bombs."""
    with np.load(io.BytesIO(content)) as file:
        whole = {name: file[name] for name in file.files}
    for name, array in whole.items():
        others = {key: value for key, value in whole.items() if key != name}
        yield f"{name} absent", _npz(others)
        for words, changed in (
            ("of text", np.full(array.shape, "text")),
            ("complex", np.full(array.shape, 1j)),
            ("of no rows", array[:0] if array.ndim else array),
            ("of one axis more", array[None]),
            ("flat", array.reshape(-1)),
            ("a number", np.array(3)),
            ("NaN", np.full(array.shape, np.nan)),
            ("10^30", np.full(array.shape, 1e30)),
            ("-7", np.full(array.shape, -7)),
        ):
            yield f"{name} {words}", _npz(others | {name: changed})
        yield f"{name} with a pickle", _npz_parts(others, name, _object_array())
        yield f"{name} of petabytes", _npz_parts(others, name, _huge_header(array))
    name, *_ = whole
    others = {key: value for key, value in whole.items() if key != name}
    yield (
        f"{name} of 128 MB of zeros",
        lambda path: path.write_bytes(_npz_parts(others, name, _zeros_header())),
    )
    yield "no arrays", _npz({})


def _npz(whole: dict[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez(content, **whole)
    return content.getvalue()


def _npz_parts(others: dict[str, np.ndarray], name: str, part: bytes) -> bytes:
    content = io.BytesIO(_npz(others))
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{name}.npy", part)
    return content.getvalue()


def _object_array() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return content.getvalue()


def npy_header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    text = repr({"descr": kind, "fortran_order": False, "shape": shape})
    line = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line.encode()


def _huge_header(array: np.ndarray) -> bytes:
    return npy_header((10**15, *array.shape[1:])) + bytes(64)


def _zeros_header() -> bytes:
    return npy_header((32 << 20,)) + bytes(128 << 20)


def tables(content: bytes) -> Iterator[Damage]:
    """Each column absent, twice, of another type, or of nulls."""
    table = pq.read_table(io.BytesIO(content))
    for name in table.column_names:
        rest = table.drop_columns([name])
        yield f"{name} absent", parquet_bytes(rest)
        for words, column in (
            ("of nulls", pa.nulls(len(table), table[name].type)),
            ("of null type", pa.nulls(len(table))),
            ("of text", pa.array(["x"] * len(table))),
            ("of lists", pa.array([[1]] * len(table))),
            ("of NaN", pa.array([float("nan")] * len(table))),
            ("of -7", pa.array([-7] * len(table))),
            ("of 10^9", pa.array([10**9] * len(table))),
        ):
            yield f"{name} {words}", parquet_bytes(rest.append_column(name, column))
        yield f"{name} twice", parquet_bytes(table.append_column(name, table[name]))
    yield "no rows", parquet_bytes(table[:0])
    yield "no columns", parquet_bytes(table.select([]))


def parquet_bytes(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


def tensors(content: bytes, every: int = 1) -> Iterator[Damage]:
    """Each tensor absent, of another type or shape, not finite; and headers that lie; of all
    these each `every`-th."""
    found = [*_other_tensors(load_tensors(content)), *_other_headers(content)]
    for words, damaged in found[::every]:
        yield words, damaged if isinstance(damaged, bytes) else tensor_bytes(damaged)


def _other_tensors(
    whole: dict[str, np.ndarray],
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for name, tensor in whole.items():
        others = {key: value for key, value in whole.items() if key != name}
        yield f"{name} absent", others
        for words, changed in (
            ("of one axis more", tensor[None]),
            ("of integers", tensor.astype(np.int64)),
            ("NaN", tensor * np.nan),
            ("infinite", tensor + np.inf),
        ):
            if tensor.dtype.kind == "f" or words.startswith("of"):
                yield f"{name} {words}", others | {name: np.ascontiguousarray(changed)}


def _other_headers(content: bytes) -> Iterator[tuple[str, bytes]]:
    length = struct.unpack("<Q", content[:8])[0]
    for words, number in (("2^62", 1 << 62), ("-1", 2**64 - 1), ("0", 0), ("10^8", 10**8)):
        yield f"a header of {words} bytes", struct.pack("<Q", number) + content[8:]
    header = json.loads(content[8 : 8 + length])
    name = next(key for key in header if key != "__metadata__")
    for words, value in (
        ("petabytes", [0, 10**15]),
        ("a negative start", [-8, 0]),
        ("an end before its start", [64, 0]),
    ):
        told = header | {name: header[name] | {"data_offsets": value}}
        yield f"{name} of {words}", _safetensors(told, content[8 + length :])
    yield "a deep header", struct.pack("<Q", 200_000) + b"[" * 200_000


def _safetensors(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body

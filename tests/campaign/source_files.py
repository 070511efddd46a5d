"""Damaged sources: arrays, tables, lists, tensors, and the benchmarks' original files."""

import gzip
import io
import os
import pickle
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors.numpy import save as tensor_bytes

from campaign.case import Case
from campaign.ground import Ground, ground, two_kinds
from campaign.mutations import (
    NO_FILE,
    Damage,
    cut,
    drawing,
    flipped,
    in_place,
    overwritten,
    replaced,
)
from campaign.run_files import arrays, npy_header, parquet_bytes, tables, tensors


@dataclass(frozen=True)
class Source:
    file: str
    """What is damaged."""
    given: str
    """What the verb is given."""
    write: Callable[[Path], None]
    """Into an empty folder."""
    of_vectors: bool = False
    more: Callable[[bytes], Iterator[Damage]] = lambda content: iter(())  # noqa: ARG005


def cases() -> Iterator[Case]:
    made = ground()
    for source in _sources(made):
        place = made.folder / "sources" / source.given.replace(":", "-")
        if not place.exists():
            place.mkdir(parents=True)
            source.write(place)
        content = (place / source.file).read_bytes()
        draw = drawing("sources", source.file)
        damages = [
            *cut(content, 8),
            *flipped(content, 20, draw),
            *overwritten(content, 6, draw),
            *replaced(content),
            *source.more(content),
        ]
        for words, damage in [*damages, *NO_FILE.items()]:
            yield Case(
                name=f"{source.given} with {source.file}: {words}",
                prepare=partial(_lay, made, place, source, damage),
                names=(
                    source.file.removesuffix(".gz"),
                    Path(source.given).name,
                    source.given,
                    "photos/",
                ),
                makes=("out.csv", "*skipped.csv"),
                cache=made.cache,
            )


def _lay(made: Ground, place: Path, source: Source, damage: Any, folder: Path) -> list[object]:
    for path in place.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name, copy_function=os.link)
        else:
            os.link(path, folder / path.name)
    target = folder / source.file
    content = target.read_bytes()
    target.unlink()  # the other link keeps what it has
    target.write_bytes(content)
    if callable(damage):
        in_place(target, damage)
    else:
        target.write_bytes(damage)
    run = made.vector_run if source.of_vectors else made.image_run
    return ["predict", run, source.given, "--out", "out.csv", "--device", "cpu", "--quiet"]


def _sources(made: Ground) -> Iterator[Source]:
    draw = np.random.default_rng(1)
    pixels = draw.integers(0, 256, (6, 8, 8, 3), np.uint8)
    rows, targets = two_kinds(6)

    def saver(name: str, content: Callable[[], bytes]) -> Callable[[Path], None]:
        return lambda folder: (folder / name).write_bytes(content()) and None

    def npy(array: np.ndarray) -> bytes:
        content = io.BytesIO()
        np.save(content, array)
        return content.getvalue()

    def npz(**whole: np.ndarray) -> bytes:
        content = io.BytesIO()
        np.savez(content, **whole)
        return content.getvalue()

    yield Source("a.npy", "a.npy", saver("a.npy", lambda: npy(pixels)), more=_headers)
    yield Source(
        "a.npz", "a.npz", saver("a.npz", lambda: npz(images=pixels, targets=targets)), more=arrays
    )
    encoded = [path.read_bytes() for path in sorted(made.photos.rglob("*.png"))[:6]]
    hub = pa.table({"image": [{"bytes": each, "path": None} for each in encoded], "label": targets})
    yield Source(
        "a.parquet", "a.parquet", saver("a.parquet", lambda: parquet_bytes(hub)), more=_tables
    )
    for name, separator in (("list.csv", ","), ("list.tsv", "\t")):
        text = separator.join(("path", "label")) + "\n"
        text += "".join(f"photos/{n}.png{separator}{n % 2}\n" for n in range(6))
        yield Source(name, name, partial(_listed, made, name, text), more=_list_texts)
    text = "".join(f"photos/{n}.png\n" for n in range(6))
    yield Source("list.txt", "list.txt", partial(_listed, made, "list.txt", text), more=_list_texts)
    yield Source("v.npy", "v.npy", saver("v.npy", lambda: npy(rows)), True, _headers)
    yield Source("v.npz", "v.npz", saver("v.npz", lambda: npz(vectors=rows)), True, arrays)
    table = pa.table({"features": list(rows), "label": targets})
    yield Source(
        "v.parquet", "v.parquet", saver("v.parquet", lambda: parquet_bytes(table)), True, _tables
    )
    lines = ",".join(f"f{n}" for n in range(12)) + "\n"
    lines += "".join(",".join(map(str, row)) + "\n" for row in rows)
    yield Source("v.csv", "v.csv", saver("v.csv", lines.encode), True, _list_texts)
    yield Source(
        "v.safetensors",
        "v.safetensors",
        saver("v.safetensors", lambda: tensor_bytes({"features": rows})),
        True,
        tensors,
    )
    yield Source("data_batch_1", "cifar10@train:.", _cifar, more=_pickles)
    yield Source("batches.meta", "cifar10@test:.", _cifar, more=_pickles)
    yield Source("train-images-idx3-ubyte.gz", "mnist@train:.", _idx, more=_gzips)
    yield Source("train-labels-idx1-ubyte", "fashion-mnist@train:.", _plain_idx)
    yield Source("train_X.bin", "stl10@train:.", _stl)
    yield Source("train_y.bin", "stl10@test+train:.", _stl)


def _listed(made: Ground, name: str, text: str, folder: Path) -> None:
    (folder / "photos").mkdir()
    for number, path in enumerate(sorted(made.photos.rglob("*.png"))[:6]):
        shutil.copy(path, folder / "photos" / f"{number}.png")
    (folder / name).write_text(text)


def _headers(content: bytes) -> Iterator[Damage]:  # noqa: ARG001
    for words, shape in (
        ("petabytes", (10**15, 8, 8, 3)),
        ("no rows", (0, 8, 8, 3)),
        ("a negative shape", (-1, 8, 8, 3)),
        ("many axes", (1,) * 40),
        ("an overflow", (2**62, 2**62)),
    ):
        for kind in ("|u1", "<f4", "|O", "<U9", "nonsense"):
            yield f"a header of {words} of {kind}", npy_header(shape, kind) + bytes(256)
    yield "a header of 1 GB", b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b" " * 1000
    yield (
        "a header that calls",
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 64) + b"__import__('os')".ljust(63) + b"\n",
    )


def _tables(content: bytes) -> Iterator[Damage]:
    yield from tables(content)
    yield "a footer of 4 GB", content[:-8] + struct.pack("<I", 2**32 - 1) + b"PAR1"


def _list_texts(content: bytes) -> Iterator[Damage]:
    head, *rest = content.splitlines(keepends=True)
    yield "UTF-16", content.decode().encode("utf-16")
    yield "not UTF-8", content + b"\xff\xfe.png\n"
    yield "NULs", content + b"\0\0\0\n"
    yield "a row of 10 MB", content + b"x" * (10 << 20) + b"\n"
    yield "a field of 5,000 digits", content + b"9" * 5000 + b",1\n"
    yield "an open quote", content + b'"photos/0.png,1\n'
    yield "two columns of one name", head.strip() + b"," + head + b"".join(rest)
    yield "no header", b"".join(rest)
    yield "one field too few", content + b"\n,\n"
    yield "paths that lead out", content + b"../../../etc/passwd,1\n"
    yield "an absolute path", content + b"/etc/passwd,1\n"
    yield "nobody's home", content + b"~nosuchuser/a.png,1\n"
    yield "a path of a device", content + b"/dev/zero,1\n"
    yield "escapes", content + b"\x1b[31mred\x1b[0m.png,1\n"
    yield "not a number", content.replace(b"0", b"nan")
    yield "infinite", content.replace(b"0", b"inf")


def _cifar(folder: Path) -> None:
    draw = np.random.default_rng(2)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        rows = draw.integers(0, 256, (2, 3072), np.uint8)
        content = {b"data": rows, b"labels": [1, 7], b"filenames": [b"a.png", b"b.png"]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    names = [f"class {n}".encode() for n in range(10)]
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}, protocol=2))


def _pickles(content: bytes) -> Iterator[Damage]:  # noqa: ARG001
    class Calls:
        def __reduce__(self) -> Any:
            return os.system, ("touch executed",)

    yield "a pickle that calls", pickle.dumps({b"data": Calls(), b"labels": []}, protocol=2)
    yield "a pickle that calls as a whole", pickle.dumps(Calls(), protocol=2)
    nested: Any = ()
    for _ in range(28):
        nested = (nested, nested)
    yield "nested tuples as a key", _with_key(nested)
    yield "nested tuples", pickle.dumps(nested, protocol=2)
    yield "nested tuples as data", pickle.dumps({b"data": nested, b"labels": nested}, protocol=2)
    for kind in (b"]", b"}", b")"):
        yield f"{kind!r} without end", b"\x80\x02" + kind * 100_000 + b"."
    yield "deep tuples", b"\x80\x02)" + b"\x85" * 100_000 + b"."
    yield "deep lists", b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."
    yield "a string of 2 GB", b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"x" * 100 + b"."
    yield "a negative string", b"\x80\x02T" + struct.pack("<i", -5) + b"x" * 100 + b"."
    yield "a long of 2 GB", b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"x" * 9 + b"."
    yield "a number of 5,000 digits", b"\x80\x02I" + b"9" * 5000 + b"\n."
    yield "a far memo", b"\x80\x02Nr\xff\xff\xff\x7f."
    yield "labels too many", pickle.dumps({b"data": b"", b"labels": list(range(9))}, protocol=2)


def _with_key(key: Any) -> bytes:
    """The dictionary {key: 1, b"data": 1}, without the hash of its key, which may take long."""
    parts = (pickle.dumps(part, protocol=2)[2:-1] for part in (key, 1, b"data", 1))
    return b"\x80\x02}(" + b"".join(parts) + b"u."


def _idx_bytes(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x800 + values.ndim, *values.shape) + values.tobytes()


def _plain_idx(folder: Path) -> None:
    draw = np.random.default_rng(3)
    for stem in ("train", "t10k"):
        images = draw.integers(0, 256, (4, 28, 28), np.uint8)
        (folder / f"{stem}-images-idx3-ubyte").write_bytes(_idx_bytes(images))
        labels = np.array([1, 2, 3, 4], np.uint8)
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(_idx_bytes(labels))


def _idx(folder: Path) -> None:
    _plain_idx(folder)
    for path in list(folder.iterdir()):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def _gzips(content: bytes) -> Iterator[Damage]:  # noqa: ARG001
    yield (
        "512 MB of zeros",
        lambda path: path.write_bytes(gzip.compress(bytes(512 << 20), 1, mtime=0)),
    )
    header = struct.pack(">IIII", 0x803, 2**31 - 1, 28, 28)
    yield "two thousand million images", gzip.compress(header + bytes(784), mtime=0)
    header = struct.pack(">IIII", 0x803, 1, 2**31 - 1, 2**31 - 1)
    yield "an image of 2^62 pixels", gzip.compress(header + bytes(784), mtime=0)


def _stl(folder: Path) -> None:
    draw = np.random.default_rng(4)
    for split, n in (("train", 3), ("test", 2), ("unlabeled", 2)):
        (folder / f"{split}_X.bin").write_bytes(draw.bytes(n * 3 * 96 * 96))
    (folder / "train_y.bin").write_bytes(bytes([1, 10, 3]))
    (folder / "test_y.bin").write_bytes(bytes([7, 2]))

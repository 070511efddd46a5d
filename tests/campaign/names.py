"""Hostile names of files and classes, in tables, on terminals and in folders; and planted links."""

import csv
import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from campaign.case import Case
from campaign.disturbed_verbs import traced
from campaign.ground import FLAGS, IMAGE_FLAGS, Ground, ground
from campaign.process import Ended

_NAMES: dict[str, bytes] = {
    "an escape": b"\x1b[31mred\x1b[0m.png",
    "a title": b"\x1b]0;owned\x07.png",
    "a bell": b"\x07\x08.png",
    "C1 controls": "\x9b31m.png".encode(),
    "two lines": b"one\ntwo.png",
    "a return": b"one\rtwo.png",
    "a tab": b"one\ttwo.png",
    "a formula": b"=1+1.png",
    "a formula with plus": b"+1.png",
    "a formula with minus": b"-1.png",
    "a formula with at": b"@SUM(A1).png",
    "an option": b"--help.png",
    "not UTF-8": b"\xff\xfe.png",
    "half a letter": b"caf\xc3.png",
    "a quote": b'say "hi", he said.png',
    "right to left": "\u202egnp.png".encode(),
    "a zero width": "a\u200bb.png".encode(),
    "markup": b"<script>alert(1)<script>.png",
    "entities": b"&lt;&#0;.png",
    "a format": b"%s%n{0}{x}[red].png",
    "a reserved word": b"con.png",
    "dots": b"a..png",
    "a space": b" .png",
    "backslashes": b"a\\..\\x.png",
    "as long as can be": b"x" * 251 + b".png",
    "letters of four bytes": "\U0001f98a".encode() * 62 + b".png",
    "composed otherwise": "e\u0301.png".encode(),
}


def cases() -> Iterator[Case]:
    made = ground()
    for words, name in _NAMES.items():
        for how, flags, read in (
            ("csv", ["--out", "out.csv"], _csv_names),
            ("parquet", ["--out", "out.parquet"], _parquet_names),
            ("jsonl", ["--out", "out.jsonl"], _json_names),
            ("stdout", [], None),
            ("copies", ["--out", "out.csv", "--copy-to", "sorted"], _csv_names),
        ):
            command = ["predict", made.image_run, "photos", *flags, "--device", "cpu", "--quiet"]
            yield Case(
                name=f"{words}, {how}",
                prepare=partial(_lay, made, name, command),
                answer=partial(_fine, read, how == "copies"),
                wanted="fine",
                makes=("out.*", "sorted", "sorted/*", "sorted/*/*"),
                codes=(0,),
                data_on_stdout=how == "stdout",
                cache=made.cache,
            )
        damaged = ["predict", made.image_run, "photos", "--out", "out.csv", "--quiet"]
        yield Case(
            name=f"{words}, of no image",
            prepare=partial(_lay, made, name, damaged, content=b"no image"),
            codes=(2,),
            cache=made.cache,
        )
        fit = ["fit", "classes", "--run", "run", *FLAGS, *IMAGE_FLAGS, "--epochs", "1"]
        yield Case(
            name=f"{words}, a class",
            prepare=partial(_lay_class, made, name.removesuffix(b".png"), fit),
            makes=("run", "run/*", "run/*/*", "run/*/*/*"),
            cache=made.cache,
        )
    yield from _planted_links(made)


def _planted_links(made: Ground) -> Iterator[Case]:
    """Where a verb writes, a link to somebody's file."""
    operations = traced("predict with features and copies")[0]
    opened = {told.partition(" ")[2] for told in operations if told.startswith("open ")}
    command = ["predict", made.image_run, made.photos, "--out", "out.csv", "--features", "out.npy"]
    command += ["--copy-to", "sorted", "--device", "cpu", "--quiet"]
    for path in sorted(path for path in opened if "PID" not in path):
        yield Case(
            name=f"a planted link at {path}",
            prepare=partial(_lay_link, path, command),
            makes=("out.*", "sorted", "sorted/*", "sorted/*/*"),
            changes=("out.csv.partial", "out.csv.partial/*", "sorted/*"),
            cache=made.cache,
        )


def _lay_link(path: str, command: list[object], folder: Path) -> list[object]:
    (folder / "victim").write_text("somebody's work")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).symlink_to(folder / "victim")
    return command


def _lay(
    made: Ground, name: bytes, command: list[object], folder: Path, content: bytes = b""
) -> list[object]:
    photos = folder / "photos"
    photos.mkdir()
    shutil.copy(made.photos / "kind-0" / "00.png", photos / "good.png")
    content = content or (made.photos / "kind-1" / "01.png").read_bytes()
    twin = name.replace(b"\xff", b"\xfd") if b"\xff" in name else None
    for each in filter(None, (name, twin)):
        with open(os.path.join(os.fsencode(photos), each), "wb") as file:  # noqa: PTH118, PTH123
            file.write(content)
    return command


def _lay_class(made: Ground, name: bytes, command: list[object], folder: Path) -> list[object]:
    (folder / "classes").mkdir()
    for number, kind in enumerate((b"good", name, b"other")):
        place = os.path.join(os.fsencode(folder / "classes"), kind or b"none")  # noqa: PTH118
        os.mkdir(place)  # noqa: PTH102
        for path in (made.photos / f"kind-{number}").iterdir():
            shutil.copy(path, os.path.join(place, os.fsencode(path.name)))  # noqa: PTH118
    return command


def _fine(read, copies: bool, folder: Path, ended: Ended) -> str:  # noqa: ARG001
    if read is None:
        return "fine"
    n_images = len(os.listdir(folder / "photos"))  # noqa: PTH208
    found = read(folder)
    if len(found) != n_images or len(set(found)) != n_images:
        return f"{n_images} images have the names {found}"
    n_copies = (
        sum(path.is_file() for path in (folder / "sorted").rglob("*")) if copies else n_images
    )
    return "fine" if n_copies == n_images else f"{n_copies} copies of {n_images} images"


def _csv_names(folder: Path) -> list[str]:
    with (folder / "out.csv").open(encoding="utf-8", newline="") as file:
        names = [row[0] for row in list(csv.reader(file))[1:]]
    formulas = [name for name in names if name[:1] in ("=", "+", "-", "@", "\t", "\r")]
    return names if not formulas else [f"formula {formulas}"]


def _parquet_names(folder: Path) -> list[str]:
    return pq.read_table(folder / "out.parquet")["name"].to_pylist()


def _json_names(folder: Path) -> list[str]:
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line)["name"] for line in lines if line]

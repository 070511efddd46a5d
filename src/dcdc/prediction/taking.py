"""What a person takes away of a finished run: folders, a table, sidecars, a file for FiftyOne.

Everything is of the answers as they were corrected, under the names that were given.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from dcdc.errors import InputError
from dcdc.prediction.formats import FORMATS
from dcdc.prediction.run_answers import CorrectedRun
from dcdc.prediction.sidecars import Sidecars, with_keyword, write_sidecars
from dcdc.prediction.sorting import (
    Files,
    Sorted,
    Sorting,
    check_sorting,
    cluster_folders,
    sort_files,
    sorted_line,
)
from dcdc.prediction.targets import SUFFIXES
from dcdc.printable import counted
from dcdc.runtime.atomic_files import atomic_file, write_text

Progress = Callable[[str, int, int], None]
_FOR_SPREADSHEETS = b"\xef\xbb\xbf"
"""Without it a spreadsheet takes the letters of other alphabets for those of its own."""


@dataclass(frozen=True)
class Taking:
    """What to leave, and where; None: not that."""

    sorting: Sorting | None = None
    table: Path | None = None
    sidecars: Sidecars | None = None
    fiftyone: Path | None = None

    @property
    def needs_files(self) -> bool:
        return any((self.sorting, self.sidecars, self.fiftyone))


@dataclass(frozen=True)
class Taken:
    sorted: Sorted | None = None
    n_rows: int = 0
    n_sidecars: int = 0
    """Written; others were as they should be."""
    n_labelled: int = 0


def check_taking(taking: Taking, files: Files | None, n_clusters: int) -> None:
    """Refuses before minutes go into training. `files`: None where none of the run's is needed."""
    if taking.table is not None:
        if taking.table.suffix not in SUFFIXES:
            raise InputError(
                f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
                parameter="table",
                value=str(taking.table),
            )
        _refuse_existing(taking.table, "table")
    if taking.fiftyone is not None:
        if taking.fiftyone.suffix != ".json":
            raise InputError("must end in .json", parameter="fiftyone", value=str(taking.fiftyone))
        _refuse_existing(taking.fiftyone, "fiftyone")
    if not taking.needs_files:
        return
    assert files is not None
    if files.file_of is None:
        raise InputError(
            f"{files.where} holds no image files",
            remedy="{copy_to}, {link_to}, {xmp} and {fiftyone} are for a folder of images, a list "
            "of paths, or feature vectors with a column of their files",
        )
    if taking.sorting is not None:
        check_sorting(taking.sorting, files, cluster_folders(n_clusters, {}))


def _refuse_existing(path: Path, parameter: str) -> None:
    if path.exists():
        raise InputError(f"{path} exists", remedy=f"choose another by {{{parameter}}}")


def take_away(
    taking: Taking,
    run: CorrectedRun,
    files: Files | None,
    *,
    key: str,
    progress: Progress = lambda *_: None,
) -> Taken:
    """Checks first, then writes; nothing that is there is overwritten.

    `key`: keeps half-made copies apart from those of others."""
    check_taking(taking, files, run.n_clusters)
    sidecars = {}
    if taking.sidecars is not None:
        sidecars = _planned_sidecars(taking.sidecars, run)
    if taking.table is not None:
        _write_table(taking.table, run.rows)
    if taking.fiftyone is not None:
        assert files is not None
        write_text(taking.fiftyone, _for_fiftyone(run, files))
    write_sidecars(sidecars, lambda done, all_: progress("sidecars", done, all_))
    done = None
    if taking.sorting is not None:
        assert files is not None
        # What belongs to no cluster has the last folder.
        clusters = np.where(run.clusters < 0, run.n_clusters, run.clusters).astype(np.int32)
        done = sort_files(
            files,
            clusters,
            cluster_folders(run.n_clusters, run.cluster_names),
            taking.sorting,
            key=key,
            progress=lambda done, all_: progress("sorting files", done, all_),
        )
    n_images = len(run.clusters)
    return Taken(
        done,
        n_images if taking.table is not None else 0,
        len(sidecars),
        n_images if taking.fiftyone is not None else 0,
    )


def said(taking: Taking, taken: Taken) -> list[str]:
    """What was written, a line each."""
    found = []
    if taking.table is not None:
        found.append(f"{counted(taken.n_rows, 'row')}: {taking.table}")
    if taking.fiftyone is not None:
        found.append(f"{counted(taken.n_labelled, 'image')} for FiftyOne: {taking.fiftyone}")
    if taking.sidecars is not None:
        found.append(f"{counted(taken.n_sidecars, 'sidecar')} written: {taking.sidecars.folder}")
    if taking.sorting is not None and taken.sorted is not None:
        found.append(sorted_line(taken.sorted, taking.sorting))
    return found


def _write_table(path: Path, rows: pa.Table) -> None:
    kind = FORMATS[path.suffix]
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        pieces, whole = Path(folder) / "pieces", Path(folder) / path.name
        with pieces.open("wb") as file:
            file.write(_FOR_SPREADSHEETS if path.suffix == ".csv" else b"")
            file.write(kind.head(rows.schema))
            for some in rows.combine_chunks().to_batches():
                file.write(kind.piece(some))
        kind.assemble(pieces, whole)
        with atomic_file(path) as temporary:
            whole.rename(temporary)


def _planned_sidecars(sidecars: Sidecars, run: CorrectedRun) -> dict[Path, bytes]:
    """Those that have to be written; one that cannot be read is refused before the first is."""
    paths = [sidecars.path_of(name) for name in run.names]
    wanted = dict(zip(paths, map(run.name_of, run.clusters.tolist()), strict=True))
    if len(wanted) < len(paths):
        twice = Counter(paths).most_common(1)[0][0]
        raise InputError(
            f"several images would share the sidecar {twice}",
            remedy="leave out {lightroom}: then each has its own",
        )
    found = {path: with_keyword(path, keyword) for path, keyword in wanted.items()}
    return {path: content for path, content in found.items() if content is not None}


def _for_fiftyone(run: CorrectedRun, files: Files) -> str:
    """As `fiftyone.types.FiftyOneImageClassificationDataset` reads it, by absolute paths."""
    assert files.file_of is not None
    labels: dict[str, object] = {}
    rows = run.rows.drop_columns(["name", "cluster_name", "confidence"]).to_pylist()
    confidence = run.table["confidence"].to_pylist()
    for row, about in enumerate(rows):
        name = run.name_of(int(run.clusters[row]))
        attributes = {key: value for key, value in about.items() if value is not None}
        found = {"label": name, "confidence": confidence[row], "attributes": attributes}
        labels[str(files.file_of(row).absolute())] = None if name is None else found
    used = sorted(set(run.clusters[run.clusters >= 0].tolist()))
    classes = list(dict.fromkeys(str(run.name_of(cluster)) for cluster in used))
    return json.dumps({"classes": classes, "labels": labels}, indent=1) + "\n"

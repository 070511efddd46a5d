"""What people corrected in a run's answers: a list of edits, in the order in which they were made.

The last one can be taken back, whenever it was made; those that somebody else made of the same
answers come after one's own. `edits.json` holds them, an edit a line, with
the digest of the answers that they correct. Shapes: N images.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.cluster_names import tidy_name
from dcdc.errors import InputError
from dcdc.metrics.health import OUTLIER
from dcdc.runtime.atomic_files import write_text
from dcdc.stored import files
from dcdc.stored.reading import CHECKSUM, sealed
from dcdc.stored.schema import Unfit

EDITS_FORMAT = 1
OUTSIDE = OUTLIER
"""The cluster of images that people put into none."""
Edit = Mapping[str, Any]
"""By its `kind`, as dcdc.stored.files.EDITS has them; images are [row, name]."""


@dataclass(frozen=True, eq=False)
class RunAnswers:
    """Of a run, as it gave them."""

    names: Sequence[str]
    clusters: NDArray[np.integer]
    """N"""
    n_clusters: int

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256(np.ascontiguousarray(self.clusters, np.int64).tobytes())
        found.update("\0".join(self.names).encode("utf-8", "surrogatepass"))
        return found.hexdigest()[:16]


@dataclass(frozen=True)
class Edits:
    answers: str
    """The digest of what they correct."""
    made: tuple[Edit, ...] = ()

    @property
    def content(self) -> dict[str, Any]:
        return sealed({"format": EDITS_FORMAT, "answers": self.answers, "edits": [*self.made]})

    @property
    def version(self) -> str:
        """Another one after every edit."""
        return str(self.content[CHECKSUM]) if self.made else ""

    def with_edit(self, edit: Edit, answers: RunAnswers) -> "Edits":
        """Raises InputError for one that does not fit what the earlier ones left."""
        longer = replace(self, made=(*self.made, edit))
        corrected(longer, answers)
        return longer

    def without_last(self) -> "Edits":
        return replace(self, made=self.made[:-1])


@dataclass(frozen=True, eq=False)
class Corrected:
    """RunAnswers after all edits."""

    clusters: NDArray[np.int32]
    """N; OUTSIDE for images that belong to none."""
    n_clusters: int
    """An image may be moved to a new cluster, which has the next number."""
    names: dict[int, str]
    """Of clusters that were given one; an empty one was taken away. Those of the run's own clusters
    are in its `names.json` too."""
    placed: NDArray[np.bool_]
    """N: images that a person put where they are, or out of every cluster."""
    together: list[list[int]] = field(default_factory=list)
    """Rows that belong to one cluster, whichever it is."""
    apart: list[list[int]] = field(default_factory=list)
    """Rows of which no two belong to one cluster."""


def corrected(edits: Edits, answers: RunAnswers) -> Corrected:
    """Raises InputError for edits of other answers, or of an image or cluster that is not there."""
    if edits.answers != answers.digest:
        raise InputError("the edits correct other answers than the run has")
    clusters = answers.clusters.astype(np.int32)
    found = Corrected(clusters, answers.n_clusters, {}, np.zeros(len(clusters), bool))
    for edit in edits.made:
        found = _after(edit, found, answers)
    return found


def _after(edit: Edit, before: Corrected, answers: RunAnswers) -> Corrected:
    """`before` is changed where it is arrays, as its only holder may."""
    kind, n_clusters = edit["kind"], before.n_clusters
    if kind == "name":
        _require_clusters([edit["cluster"]], n_clusters)
        name = tidy_name(edit["name"], f"the name of cluster {edit['cluster']}")
        before.names[edit["cluster"]] = name
        return before
    if kind == "merge":
        _require_clusters([*edit["clusters"], edit["into"]], n_clusters)
        before.clusters[np.isin(before.clusters, edit["clusters"])] = edit["into"]
        return before
    if kind == "split":
        return _split(edit, before, answers)
    rows = _rows(edit["images"], answers)
    if kind in ("together", "apart"):
        if len(rows) < 2:
            raise InputError(f"{kind} needs two images or more")
        (before.together if kind == "together" else before.apart).append(rows)
        return before
    to = OUTSIDE
    if kind == "move":
        to = edit["to"]
        _require_clusters([to], n_clusters + 1)
    before.clusters[rows] = to
    before.placed[rows] = True
    return replace(before, n_clusters=max(n_clusters, to + 1))


def _split(edit: Edit, before: Corrected, answers: RunAnswers) -> Corrected:
    """Every part is a new cluster; images that are in none stay. Nobody looked at each of them, so
    none counts as placed."""
    cluster, n_clusters = edit["cluster"], before.n_clusters
    _require_clusters([cluster], n_clusters)
    if not edit["parts"]:
        raise InputError("a split needs a part or more")
    for number, part in enumerate(edit["parts"], n_clusters):
        rows = _rows(part, answers)
        if not rows:
            raise InputError("a part of a split holds no image")
        for row in rows:
            if before.clusters[row] != cluster:
                raise InputError(f"image {row} is not in cluster {cluster}, or in two of its parts")
            before.clusters[row] = number
    return replace(before, n_clusters=n_clusters + len(edit["parts"]))


def _require_clusters(numbers: Sequence[int], n_clusters: int) -> None:
    for number in numbers:
        if not 0 <= number < n_clusters:
            raise InputError(f"there is no cluster {number}: there are 0 to {n_clusters - 1}")


def _rows(images: Sequence[Sequence[Any]], answers: RunAnswers) -> list[int]:
    for row, name in images:
        if row >= len(answers.names) or answers.names[row] != name:
            raise InputError(f"image {row} of the run is not called {name[:100]!r}")
    return [int(row) for row, _ in images]


def write_edits(path: Path, edits: Edits) -> None:
    content = edits.content
    lines = ",\n".join("  " + json.dumps(edit, ensure_ascii=False) for edit in edits.made)
    rest = [f' "{key}": {json.dumps(content[key])}' for key in ("format", "answers", CHECKSUM)]
    rest.insert(2, f' "edits": [\n{lines}\n ]')
    write_text(path, "{\n" + ",\n".join(rest) + "\n}\n")


def read_edits(path: Path, answers: RunAnswers) -> Edits:
    """Those of `answers`, checked; edits of others are refused."""
    content = files.EDITS.read(path)
    edits = Edits(content["answers"], tuple(content["edits"]))
    try:
        corrected(edits, answers)
    except InputError as error:
        raise files.EDITS.damaged(path, Unfit("", f"does not fit the run: {error}")) from None
    return edits


def joined(own: Edits, others: Edits, answers: RunAnswers, names: Mapping[int, str]) -> Edits:
    """What both begin with is taken once. A cluster that is new in `others` is new here too, with
    the next number that is free. `names`: those in force, which a name that is taken back leaves.

    Raises InputError for edits of other answers, and where one does not fit what is left."""
    corrected(others, answers)  # by themselves, in their own numbers
    pairs = zip(own.made, others.made, strict=False)
    n_shared = len(list(takewhile(lambda pair: _same(*pair), pairs)))
    n_then = corrected(replace(own, made=own.made[:n_shared]), answers).n_clusters
    n_now = corrected(own, answers).n_clusters
    called, more = dict(names), []
    for edit in others.made[n_shared:]:
        renumbered = _renumbered(edit, n_then, n_now - n_then)
        if renumbered["kind"] == "name":
            cluster = renumbered["cluster"]
            renumbered["before"] = called.get(cluster, "")
            called[cluster] = tidy_name(renumbered["name"], f"the name of cluster {cluster}")
        more.append(renumbered)
    found = replace(own, made=(*own.made, *more))
    corrected(found, answers)
    return found


def _same(one: Edit, other: Edit) -> bool:
    """Whatever was called how before."""
    return {**one, "before": ""} == {**other, "before": ""}


def _renumbered(edit: Edit, first_new: int, by: int) -> dict[str, Any]:
    def now(number: int) -> int:
        return number if number < first_new else number + by

    found = dict(edit)
    for key in ("cluster", "into", "to"):
        if key in found:
            found[key] = now(edit[key])
    if "clusters" in found:
        found["clusters"] = [now(number) for number in edit["clusters"]]
    return found

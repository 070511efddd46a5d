"""What people taught a run by correcting another one: labels, pairs, and which clusters there are.

Edits speak of the clusters of the run that they correct. Who learns from them has other clusters:
merged ones are one, those that nobody is in are gone, and the rest is numbered anew.

Shapes: N images, K clusters after the edits, M pairs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.edits import OUTSIDE, Edits, RunAnswers, corrected
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import write_arrays
from dcdc.stored import files
from dcdc.stored.schema import Unfit

Pairs = NDArray[np.int64]
"""M x 2: rows of images."""
NO_PAIRS: Pairs = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Taught:
    clusters: NDArray[np.int32]
    """N: after the edits; OUTSIDE for images that belong to none."""
    placed: NDArray[np.bool_]
    """N: images that a person put where they are, or out of every cluster."""
    names: tuple[str, ...]
    """K: what people call the clusters, "" where they do not."""
    together: Pairs = field(default_factory=NO_PAIRS.copy)
    apart: Pairs = field(default_factory=NO_PAIRS.copy)
    source: str = ""
    """The folder of the corrected run."""
    answers: str = ""
    """The digest of what it answered."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Edits, by their kind."""
    doubt: float = 0.0
    """The mean share that the answers did not give to their first choice."""

    @property
    def n_clusters(self) -> int:
        return len(self.names)

    @cached_property
    def labelled(self) -> NDArray[np.int64]:
        """Rows of the images that a person put into a cluster."""
        return np.flatnonzero(self.placed & (self.clusters != OUTSIDE))

    @cached_property
    def outside(self) -> NDArray[np.int64]:
        """Rows of the images that belong to none."""
        return np.flatnonzero(self.clusters == OUTSIDE)


def taught_by(
    edits: Edits,
    answers: RunAnswers,
    *,
    names: Mapping[int, str] | None = None,
    earlier: Taught | None = None,
    source: str = "",
    doubt: float = 0.0,
) -> Taught:
    """`names`: of the corrected run's clusters. `earlier`: what that run had been taught itself,
    which holds on where nothing else was said since.

    Raises InputError for edits that leave fewer than two clusters, or contradict each other."""
    found = corrected(edits, answers)
    counts = Counter(edit["kind"] for edit in edits.made)
    if not counts.keys() - {"name"}:
        what = "names alone, which teach nothing" if counts else "none"
        raise InputError(
            f"there are no edits to learn from ({what})", remedy="correct images in dcdc view"
        )
    kept = np.unique(found.clusters[found.clusters != OUTSIDE])
    if len(kept) < 2:
        raise InputError(f"the edits leave {len(kept)} clusters, and two are the least")
    for group in found.apart:
        if len(group) > len(kept):
            raise InputError(
                f"{len(group)} images belong apart by the edits, of {len(kept)} clusters",
                remedy="take that edit back, or split a cluster",
            )
    clusters = np.full(len(found.clusters), OUTSIDE, np.int32)
    inside = found.clusters != OUTSIDE
    clusters[inside] = np.searchsorted(kept, found.clusters[inside])
    placed, earlier_pairs = found.placed, (NO_PAIRS, NO_PAIRS)
    if earlier is not None:
        placed, earlier_pairs = placed | earlier.placed, (earlier.together, earlier.apart)
    since = found.placed.copy()
    since[[row for group in (*found.together, *found.apart) for row in group]] = True
    taught = Taught(
        clusters=clusters,
        placed=placed,
        names=_names(kept.tolist(), edits, answers.n_clusters, dict(names or {}) | found.names),
        together=_pairs(_chained(found.together), since, earlier_pairs[0]),
        apart=_pairs(_all_pairs(found.apart), since, earlier_pairs[1]),
        source=source,
        answers=answers.digest,
        counts=counts,
        doubt=doubt,
    )
    _require_consistent(taught, answers.names)
    return taught


def _merged(edits: Edits, n_clusters: int) -> dict[int, list[int]]:
    """By cluster: those of the run that are in it by now, itself first."""
    found = {cluster: [cluster] for cluster in range(n_clusters)}
    for edit in edits.made:
        if edit["kind"] == "merge":
            into = found.setdefault(edit["into"], [])
            for cluster in edit["clusters"]:
                if cluster != edit["into"]:
                    into += found.pop(cluster, [])
    return found


def _names(
    kept: Sequence[int], edits: Edits, n_clusters: int, names: Mapping[int, str]
) -> tuple[str, ...]:
    """A cluster's own name, or the first of those that were merged into it."""
    merged = _merged(edits, n_clusters)
    told = ([names.get(each, "") for each in (old, *merged.get(old, ()))] for old in kept)
    return tuple(next(filter(None, each), "") for each in told)


def _chained(groups: Sequence[Sequence[int]]) -> Pairs:
    """Each with the next: that all of a group belong together follows."""
    return _as_pairs([pair for group in groups for pair in pairwise(group)])


def _all_pairs(groups: Sequence[Sequence[int]]) -> Pairs:
    return _as_pairs([pair for group in groups for pair in combinations(group, 2)])


def _as_pairs(pairs: Sequence[tuple[int, int]]) -> Pairs:
    return np.array(pairs, np.int64).reshape(-1, 2)


def _pairs(said: Pairs, since: NDArray[np.bool_], earlier: Pairs) -> Pairs:
    """With those of earlier of whose images nothing else was said `since`."""
    both = np.concatenate([earlier[~since[earlier].any(axis=1)], said])
    return np.unique(np.sort(both, axis=1), axis=0)


def _require_consistent(taught: Taught, names: Sequence[str]) -> None:
    """Of images that belong together, no two are in different clusters or belong apart."""
    unit = linked(taught.together, len(taught.clusters))
    is_label = taught.placed & (taught.clusters != OUTSIDE)
    label = {int(unit[row]): int(row) for row in taught.labelled}
    for row in taught.labelled:
        other = label[int(unit[row])]
        if taught.clusters[row] != taught.clusters[other]:
            raise _contradiction(row, other, names, "belong together, and are in two clusters")
    for one, other in taught.apart:
        if unit[one] == unit[other]:
            raise _contradiction(one, other, names, "belong together, and apart")
        same = taught.clusters[one] == taught.clusters[other]
        if is_label[one] and is_label[other] and same:
            raise _contradiction(one, other, names, "belong apart, and were put into one cluster")


def _contradiction(one: int, other: int, names: Sequence[str], problem: str) -> InputError:
    told = " and ".join(f"{row} ({names[row][:100]!r})" for row in sorted((int(one), int(other))))
    return InputError(f"images {told} {problem} by the edits", remedy="take one edit back")


def linked(pairs: Pairs, n_images: int) -> NDArray[np.int64]:
    """N: the same number for images that pairs lead from one to the other."""
    from scipy.sparse import coo_array  # 0.4 s, for those who correct alone
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs), bool)
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_images, n_images))
    found: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return found


def write_taught(path: Path, taught: Taught) -> None:
    write_arrays(
        path,
        {
            **{"clusters": taught.clusters, "placed": taught.placed.astype(np.int8)},
            **{"together": taught.together, "apart": taught.apart},
            **{"names": np.array(taught.names), "source": np.array(taught.source)},
            **{"answers": np.array(taught.answers), "doubt": np.array(taught.doubt)},
            "kinds": np.array(list(taught.counts)),
            "counts": np.array(list(taught.counts.values()), np.int64),
        },
    )


def read_taught(path: Path) -> Taught:
    found = files.TAUGHT.read(path)
    n_images, n_clusters = len(found["clusters"]), len(found["names"])
    for name, lowest, highest in (
        ("clusters", OUTSIDE, n_clusters - 1),
        *((pairs, 0, n_images - 1) for pairs in ("together", "apart")),
    ):
        values = found[name]
        if values.size and not lowest <= values.min() <= values.max() <= highest:
            error = Unfit(name, f"has {values.min()} to {values.max()}, not {lowest} to {highest}")
            raise files.TAUGHT.damaged(path, error)
    return Taught(
        clusters=found["clusters"].astype(np.int32),
        placed=found["placed"].astype(bool),
        names=tuple(found["names"].tolist()),
        together=found["together"].astype(np.int64),
        apart=found["apart"].astype(np.int64),
        source=str(found["source"]),
        answers=str(found["answers"]),
        counts=dict(zip(found["kinds"].tolist(), found["counts"].tolist(), strict=True)),
        doubt=float(found["doubt"]),
    )

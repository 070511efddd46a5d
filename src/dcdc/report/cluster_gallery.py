"""The clusters of a model as Python shows them: pictures in a notebook, a table in a terminal."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import Pictures, missing_pictures
from dcdc.errors import InputError
from dcdc.printable import counted, shown
from dcdc.report.facts import ClusterFacts
from dcdc.report.gallery import (
    is_coarse,
    once,
    random_images,
    shown_clusters,
    thumbnail_uri,
    typical_images,
)
from dcdc.report.rendering import render

PER_CLUSTER = 8
_SIDE = 64  # pixels of a picture, which stays in the notebook's file
_COLUMNS = 79  # of a terminal


class _Shown(NamedTuple):
    uri: str
    says: str


class _Row(NamedTuple):
    title: str
    says: list[str]
    groups: list[tuple[str, list[_Shown]]]


@dataclass(frozen=True, eq=False, repr=False)
class ClusterGallery:
    """Displays itself in a notebook; elsewhere its text is a table of the largest clusters."""

    clusters: list[ClusterFacts]
    """Largest first, the empty ones too."""
    confidence: NDArray[np.floating]
    """N"""
    names: Sequence[str] = ()
    """Of the N images."""
    pictures: Pictures | None = None
    no_pictures: str | None = None
    """Why there are none."""
    cluster_names: Mapping[int, str] = field(default_factory=dict)
    """What people call the clusters."""
    per_cluster: int = PER_CLUSTER
    things: str = "images"

    def __post_init__(self) -> None:
        if self.per_cluster < 1:
            raise InputError(f"per_cluster={self.per_cluster!r} must be at least 1")

    def __repr__(self) -> str:
        note = [] if self.no_pictures is None else [shown(self.no_pictures)]
        return "\n".join([*self._heading(), *(self._table() if self.clusters else []), *note])

    def _table(self) -> list[str]:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        has_classes = any(cluster.main_class is not None for cluster in self.clusters)
        table.add_column("cluster", justify="right")
        if self.cluster_names:
            table.add_column("name", no_wrap=True, max_width=20)
        table.add_column(self.things, justify="right")
        table.add_column("share", justify="right")
        if has_classes:
            table.add_column("mostly", no_wrap=True, max_width=20)
        table.add_column("surest", no_wrap=True, overflow="ellipsis", ratio=1)
        for cluster in shown_clusters(self.clusters):
            cells = [str(cluster.number)]
            if self.cluster_names:
                cells.append(self.cluster_names.get(cluster.number, ""))
            cells += [f"{cluster.size:,}", f"{cluster.mean_confidence:.2f}"]
            if has_classes:
                cells.append(_mostly(cluster))
            surest = typical_images(cluster, min(3, self.per_cluster))
            cells.append(", ".join(self.names[position] for position in surest))
            table.add_row(*(Text(shown(cell)) for cell in cells))
        text = io.StringIO()
        # In a notebook a console would display the table there, and write no text.
        Console(file=text, width=_COLUMNS, color_system=None, force_jupyter=False).print(table)
        return [line.rstrip() for line in text.getvalue().splitlines()]

    def _repr_html_(self) -> str:
        rows = self._rows()
        return render(
            "clusters.html",
            heading=self._heading(),
            rows=rows,
            side=_SIDE,
            coarse=self.pictures is not None and is_coarse(self.pictures.shape[1]),
            # Last: all pictures have been asked for.
            note=self.no_pictures or missing_pictures(self.pictures, self.names),
        )

    def _heading(self) -> list[str]:
        """None of a model that does not know what it grouped."""
        if not self.clusters:
            return []
        in_use = [cluster for cluster in self.clusters if cluster.size]
        heading = f"{len(self.confidence):,} {self.things} in {counted(len(in_use), 'cluster')}"
        n_outliers = len(self.confidence) - sum(cluster.size for cluster in in_use)
        if n_outliers:
            heading += f", {n_outliers:,} in none"
        if len(self.clusters) > len(in_use):
            heading += f", {len(self.clusters) - len(in_use)} more are empty"
        n_shown = len(shown_clusters(self.clusters))
        if n_shown < len(in_use):
            heading += f"; the {n_shown} largest"
        return [heading]

    def _rows(self) -> list[_Row]:
        return [
            _Row(
                self.cluster_names.get(cluster.number) or f"cluster {cluster.number}",
                [
                    f"{cluster.size:,} {self.things}",
                    f"share {cluster.mean_confidence:.2f}",
                    *([] if cluster.main_class is None else [f"mostly {_mostly(cluster)}"]),
                ],
                self._pictures_of(cluster),
            )
            for cluster in shown_clusters(self.clusters)
        ]

    def _pictures_of(self, cluster: ClusterFacts) -> list[tuple[str, list[_Shown]]]:
        """Half of them by chance: the surest alone would flatter."""
        if self.pictures is None:
            return []
        n_surest = self.per_cluster // 2
        by_chance = random_images(cluster, 0, 2 * (self.per_cluster - n_surest))
        kinds = {
            "by chance": once(by_chance, self.pictures, self.per_cluster - n_surest),
            "highest share": once(typical_images(cluster, 2 * n_surest), self.pictures, n_surest),
        }
        return [(title, self._shown(positions)) for title, positions in kinds.items() if positions]

    def _shown(self, positions: list[int]) -> list[_Shown]:
        assert self.pictures is not None
        found = gather_rows(self.pictures, np.array(positions))
        return [
            _Shown(
                thumbnail_uri(picture, _SIDE),
                f"{self.names[position]}, share {self.confidence[position]:.2f}",
            )
            for picture, position in zip(found, positions, strict=True)
        ]


def _mostly(cluster: ClusterFacts) -> str:
    return f"{cluster.main_class} ({cluster.purity or 0:.0%})"

"""The paper's tables: which rows each has, and what a row's runs change in their preset."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcdc.errors import InputError
from dcdc.experiments import paper
from dcdc.experiments.paper import Published
from dcdc.experiments.standing import Row
from dcdc.nearest_name import nearest
from dcdc.prepare.presets import PRESETS


@dataclass(frozen=True)
class RecipeRow(Row):
    preset: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Flat `section.key` values laid over the preset."""


@dataclass(frozen=True)
class Table:
    name: str
    number: int
    """In the paper."""
    title: str
    rows: tuple[RecipeRow, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    @property
    def varied(self) -> frozenset[str]:
        """The keys in which rows differ."""
        return frozenset(key for row in self.rows for key in row.values)


def table(name: str) -> Table:
    if name not in TABLES:
        raise InputError(
            f"unknown table {name!r}{nearest(name, TABLES)} Tables: {', '.join(TABLES)}"
        )
    number, title, rows = TABLES[name]
    return Table(name, number, title, tuple(rows()))


def rows_of(whole: Table, datasets: Iterable[str]) -> tuple[RecipeRow, ...]:
    """The rows of some data sets; of all where none is named."""
    wanted = set(datasets)
    for dataset in sorted(wanted):
        if dataset not in paper.TITLES:
            raise InputError(
                f"unknown data set {dataset!r}{nearest(dataset, paper.TITLES)} "
                f"Table {whole.name} has {', '.join(whole.datasets)}"
            )
        if dataset not in whole.datasets:
            raise InputError(
                f"table {whole.name} has no {dataset}",
                remedy=f"give {{dataset={' or '.join(whole.datasets)}}}",
            )
    return tuple(row for row in whole.rows if not wanted or row.dataset in wanted)


def _main() -> Iterator[RecipeRow]:
    for dataset, published in paper.DCDC.items():
        yield _row(dataset, "the paper's recipe", published)
        if dataset in PRESETS:
            yield RecipeRow(dataset, "our recipe", published, dataset)


def _losses() -> Iterator[RecipeRow]:
    for dataset, published in paper.SAMPLE_VIEW_ALONE.items():
        of_class = paper.CLASS_VIEW_ALONE[dataset]
        yield _row(dataset, "sample view alone", published, {"heads.class_weight": 0.0})
        yield _row(dataset, "class view alone", of_class, {"heads.sample_weight": 0.0})
        yield _row(dataset, "both views", paper.DCDC[dataset])


def _over_clustering() -> Iterator[RecipeRow]:
    for dataset, published in paper.NO_OVER_CLUSTERING.items():
        yield _row(dataset, "no over-clustering", published, {"network.over_clusters": 0})
        yield _row(dataset, "with over-clustering", paper.DCDC[dataset])


def _repeat() -> Iterator[RecipeRow]:
    for dataset, published in paper.NO_REPEAT.items():
        yield _row(dataset, "no sample repeat", published, {"heads.n_repeats": 1})
        yield _row(dataset, "three repeats", paper.DCDC[dataset])


def _batch_size() -> Iterator[RecipeRow]:
    for size, published in paper.BATCH_SIZES.items():
        yield _row("cifar100-20", f"batch of {size}", published, {"heads.batch_size": size})


def _row(
    dataset: str, title: str, published: Published, values: Mapping[str, Any] | None = None
) -> RecipeRow:
    return RecipeRow(dataset, title, published, f"{dataset}-paper", values or {})


TABLES: dict[str, tuple[int, str, Callable[[], Iterator[RecipeRow]]]] = {
    "main": (1, "Comparison on six benchmarks", _main),
    "losses": (4, "Effect of the doubly contrastive loss", _losses),
    "over-clustering": (5, "Effect of over-clustering", _over_clustering),
    "repeat": (6, "Effect of sample repeat", _repeat),
    "batch-size": (7, "Effect of batch size", _batch_size),
}
"""Number in the paper, title and rows."""

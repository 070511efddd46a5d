"""The paper's tables: which rows each has, and what a row's runs change in their preset."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcdc.errors import InputError
from dcdc.nearest_name import nearest
from dcdc.presets import PRESETS
from dcdc.reproduce import paper
from dcdc.reproduce.paper import Published


@dataclass(frozen=True)
class Row:
    dataset: str
    title: str
    preset: str
    published: Published
    values: Mapping[str, Any] = field(default_factory=dict)
    """Flat `section.key` values laid over the preset."""


@dataclass(frozen=True)
class Table:
    name: str
    number: int
    """In the paper."""
    title: str
    rows: tuple[Row, ...]

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
    build = TABLES[name]
    return build(name)


def rows_of(whole: Table, datasets: Iterable[str]) -> tuple[Row, ...]:
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
                f"table {whole.name} has no {dataset}: give --dataset {' or '.join(whole.datasets)}"
            )
    return tuple(row for row in whole.rows if not wanted or row.dataset in wanted)


def _main(name: str) -> Table:
    rows = []
    for dataset in paper.TITLES:
        rows.append(_whole(dataset, "the paper's recipe"))
        if dataset in PRESETS:
            rows.append(Row(dataset, "our recipe", dataset, paper.DCDC[dataset]))
    return Table(name, 1, "Comparison on six benchmarks", tuple(rows))


def _losses(name: str) -> Table:
    rows = []
    for dataset in paper.SAMPLE_VIEW_ALONE:
        sample, of_class = paper.SAMPLE_VIEW_ALONE[dataset], paper.CLASS_VIEW_ALONE[dataset]
        rows += [
            _changed(dataset, "sample view alone", sample, {"loss.class_weight": 0.0}),
            _changed(dataset, "class view alone", of_class, {"loss.sample_weight": 0.0}),
            _whole(dataset, "both views"),
        ]
    return Table(name, 4, "Effect of the doubly contrastive loss", tuple(rows))


def _over_clustering(name: str) -> Table:
    rows = []
    for dataset, published in paper.NO_OVER_CLUSTERING.items():
        without = {"network.over_clusters": 0}
        rows += [
            _changed(dataset, "no over-clustering", published, without),
            _whole(dataset, "with over-clustering"),
        ]
    return Table(name, 5, "Effect of over-clustering", tuple(rows))


def _repeat(name: str) -> Table:
    rows = []
    for dataset, published in paper.NO_REPEAT.items():
        rows += [
            _changed(dataset, "no sample repeat", published, {"train.n_repeats": 1}),
            _whole(dataset, "three repeats"),
        ]
    return Table(name, 6, "Effect of sample repeat", tuple(rows))


def _batch_size(name: str) -> Table:
    rows = [
        _changed("cifar100-20", f"batch of {size}", published, {"train.batch_size": size})
        for size, published in paper.BATCH_SIZES.items()
    ]
    return Table(name, 7, "Effect of batch size", tuple(rows))


def _whole(dataset: str, title: str) -> Row:
    return _changed(dataset, title, paper.DCDC[dataset], {})


def _changed(dataset: str, title: str, published: Published, values: Mapping[str, Any]) -> Row:
    return Row(dataset, title, f"{dataset}-paper", published, values)


TABLES: dict[str, Callable[[str], Table]] = {
    "main": _main,
    "losses": _losses,
    "over-clustering": _over_clustering,
    "repeat": _repeat,
    "batch-size": _batch_size,
}

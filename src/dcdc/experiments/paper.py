"""The paper's tables: the figures it publishes, as printed, and the runs that make each row.

The paper does not say of which epoch DCDC's are; its authors' code reports the best one, chosen by
the true labels. Tables 2 and 3 hold no figures: they are
the sets' sizes and the hyper-parameters, which the `*-paper` presets follow. The paper writes
CIFAR-100 for what is `cifar100-20` here, CIFAR-100 against its 20 super-classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dcdc.errors import InputError
from dcdc.experiments.rows import Published, Row
from dcdc.nearest_name import unknown
from dcdc.prepare.presets import PRESETS

TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100-20": "CIFAR-100-20",
    "stl10": "STL-10",
    "imagenet-10": "ImageNet-10",
    "imagenet-dogs": "ImageNet-Dogs",
    "tiny-imagenet": "Tiny-ImageNet",
}
"""The data sets in the paper's order."""

# Table 1: NMI, ACC and ARI of each data set in turn. The paper took all but its own row from
# others' publications.
_TABLE_1 = """
k-means .087 .229 .049 .084 .130 .028 .125 .192 .061 .119 .241 .057 .055 .105 .020 .065 .025 .005
sc      .103 .247 .085 .090 .136 .022 .098 .159 .048 .151 .274 .076 .038 .111 .013 .063 .022 .004
ac      .105 .228 .065 .098 .138 .034 .239 .332 .140 .138 .242 .067 .037 .139 .021 .069 .027 .005
nmf     .081 .190 .034 .079 .118 .026 .096 .180 .046 .132 .230 .065 .044 .118 .016 .072 .029 .005
ae      .239 .314 .169 .100 .165 .048 .250 .303 .161 .210 .317 .152 .104 .185 .073 .131 .041 .007
dae     .251 .297 .163 .111 .151 .046 .224 .302 .152 .206 .304 .138 .104 .190 .078 .127 .039 .007
dcgan   .265 .315 .176 .120 .151 .045 .210 .298 .139 .225 .346 .157 .121 .174 .078 .135 .041 .007
decnn   .240 .282 .174 .092 .133 .038 .227 .299 .162 .186 .313 .142 .098 .175 .073 .111 .035 .006
vae     .245 .291 .167 .108 .152 .040 .200 .282 .146 .193 .334 .168 .107 .179 .079 .113 .036 .006
jule    .192 .272 .138 .103 .137 .033 .182 .277 .164 .175 .300 .138 .054 .138 .028 .102 .033 .006
dec     .257 .301 .161 .136 .185 .050 .276 .359 .186 .282 .381 .203 .122 .195 .079 .115 .037 .007
dac     .396 .522 .306 .185 .238 .088 .366 .470 .257 .394 .527 .302 .219 .275 .111 .190 .066 .017
adc        - .325    -    - .160    -    - .530    -    -    -    -    -    -    -    -    -    -
ddc     .424 .524 .329    -    -    - .371 .489 .267 .433 .577 .345    -    -    -    -    -    -
dccm    .496 .623 .408 .285 .327 .173 .376 .482 .262 .608 .710 .555 .321 .383 .182 .224 .108 .038
iic        - .617    -    - .257    -    - .610    -    -    -    -    -    -    -    -    -    -
pica    .591 .696 .512 .310 .337 .171 .611 .713 .531 .802 .870 .761 .352 .352 .201 .277 .098 .040
dcdc    .585 .699 .506 .310 .349 .179 .621 .734 .547 .817 .879 .787 .360 .365 .207 .323 .164 .073
"""


def _read_row(figures: Sequence[str]) -> dict[str, Published]:
    """By data set; a dash was not published."""
    values = [None if figure == "-" else float(figure) for figure in figures]
    found = {}
    for at, dataset in enumerate(TITLES):
        nmi, acc, ari = values[3 * at : 3 * at + 3]
        if acc is not None:
            found[dataset] = Published(acc, nmi, ari)
    return found


COMPARISON: Mapping[str, Mapping[str, Published]] = {
    method: _read_row(figures) for method, *figures in map(str.split, _TABLE_1.strip().splitlines())
}
"""By method and data set."""
DCDC = COMPARISON["dcdc"]

BY_THEIR_AUTHORS: Mapping[str, Mapping[str, Published]] = {
    "scan": {
        "cifar10": Published(0.876),
        "cifar100-20": Published(0.459),
        "stl10": Published(0.767),
    },
    "cc": {
        "cifar10": Published(0.790),
        "cifar100-20": Published(0.429),
        "stl10": Published(0.850),
        "imagenet-10": Published(0.893),
        "imagenet-dogs": Published(0.429),
        "tiny-imagenet": Published(0.140),
    },
}
"""Of methods that the paper does not have, by their own papers. SCAN's are means over seeds,
trained on the train part, of STL-10 with its unlabelled images, scored on the test part."""

TRAINED_FOR: Mapping[str, str] = {
    "dac": "50 epochs of 10 passes",
    "dccm": "200 epochs of 10 passes",
    "iic": "2,000 epochs",
    "pica": "200 epochs",
    "scan": "500 + 50 + 200 epochs",
    "cc": "1,000 epochs",
    "dcdc": "200 epochs",
}
"""For the published figures, as the methods' papers or their authors' code have it; of others it is
not known."""

# Table 4. Its last row, and those of tables 5 and 6, repeat table 1's ACC.
SAMPLE_VIEW_ALONE: Mapping[str, Published] = {
    "cifar10": Published(0.606),
    "cifar100-20": Published(0.307),
    "tiny-imagenet": Published(0.098),
}
CLASS_VIEW_ALONE: Mapping[str, Published] = {
    "cifar10": Published(0.458),
    "cifar100-20": Published(0.209),
    "tiny-imagenet": Published(0.092),
}

# Table 5.
NO_OVER_CLUSTERING: Mapping[str, Published] = {
    "stl10": Published(0.612),
    "cifar100-20": Published(0.298),
    "tiny-imagenet": Published(0.159),
}

# Table 6.
NO_REPEAT: Mapping[str, Published] = {
    "cifar100-20": Published(0.328),
    "tiny-imagenet": Published(0.163),
}

# Table 7, on CIFAR-100-20. At 200 it is table 1's row.
BATCH_SIZES: Mapping[int, Published] = {
    100: Published(0.296, nmi=0.267, ari=0.142),
    200: Published(0.349, nmi=0.310, ari=0.179),
    300: Published(0.342, nmi=0.316, ari=0.179),
    400: Published(0.323, nmi=0.305, ari=0.165),
    500: Published(0.325, nmi=0.305, ari=0.168),
    1000: Published(0.302, nmi=0.290, ari=0.155),
}


@dataclass(frozen=True)
class RecipeRow(Row):
    preset: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Flat `section.key` values laid over the preset."""


@dataclass(frozen=True)
class Table:
    name: str
    number: int
    """In the """
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
        raise InputError(unknown("table", name, TABLES))
    number, title, rows = TABLES[name]
    return Table(name, number, title, tuple(rows()))


def rows_of(whole: Table, datasets: Iterable[str]) -> tuple[RecipeRow, ...]:
    """The rows of some data sets; of all where none is named."""
    wanted = set(datasets)
    for dataset in sorted(wanted):
        if dataset not in TITLES:
            raise InputError(unknown("data set", dataset, whole.datasets))
        if dataset not in whole.datasets:
            raise InputError(
                f"table {whole.name} has no {dataset}",
                remedy=f"give {{dataset={' or '.join(whole.datasets)}}}",
            )
    return tuple(row for row in whole.rows if not wanted or row.dataset in wanted)


def _main() -> Iterator[RecipeRow]:
    for dataset, published in DCDC.items():
        yield _row(dataset, "the paper's recipe", published)
        if dataset in PRESETS:
            yield RecipeRow(dataset, "our recipe", published, dataset)


def _losses() -> Iterator[RecipeRow]:
    for dataset, published in SAMPLE_VIEW_ALONE.items():
        of_class = CLASS_VIEW_ALONE[dataset]
        yield _row(dataset, "sample view alone", published, {"heads.class_weight": 0.0})
        yield _row(dataset, "class view alone", of_class, {"heads.sample_weight": 0.0})
        yield _row(dataset, "both views", DCDC[dataset])


def _over_clustering() -> Iterator[RecipeRow]:
    for dataset, published in NO_OVER_CLUSTERING.items():
        yield _row(dataset, "no over-clustering", published, {"network.over_clusters": 0})
        yield _row(dataset, "with over-clustering", DCDC[dataset])


def _repeat() -> Iterator[RecipeRow]:
    for dataset, published in NO_REPEAT.items():
        yield _row(dataset, "no sample repeat", published, {"heads.n_repeats": 1})
        yield _row(dataset, "three repeats", DCDC[dataset])


def _batch_size() -> Iterator[RecipeRow]:
    for size, published in BATCH_SIZES.items():
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

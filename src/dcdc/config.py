"""What a run is: frozen dataclasses, read from TOML, JSON or `section.key=value`.

Every number that the command line, the estimator and the files share has its home here.
"""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dcdc.config_keys import flatten, type_of_key
from dcdc.config_rules import check_values
from dcdc.errors import InputError
from dcdc.typed_values import coerce_value, parse_value

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class DataConfig:
    source: str = ""
    """Built-in name, folder of images, Parquet, list of paths, .npy or .npz file."""
    size: int | None = None
    """Side in pixels that images are brought to; None: the source's own."""
    target: str | None = None
    """Label column of Parquet or of a list, to score against; "none": no labels."""
    on_bad: Literal["refuse", "skip"] = "refuse"
    """What to do with an image that cannot be read."""


@dataclass(frozen=True)
class NetworkConfig:
    trunk: Literal[
        "resnet34", "resnet18", "resnet34-unpooled", "resnet18-unpooled", "small", "patches"
    ] = "resnet18"
    """Unpooled: the stages see the image at its full size, for tiny images; four times the work.
    Small: for tiny images on a CPU. Patches: for photos there; its dictionary is found first."""
    sobel: bool = False
    over_clusters: int = 70
    """Clusters of the over-clustering head; 0: no such head."""
    sub_heads: int = 1
    """Heads of each kind, trained side by side; the one whose own loss is lowest answers."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    """Per channel, of pixels in [0, 1]; None: measured on the images."""

    @property
    def is_deep(self) -> bool:
        """A CPU would take days for it."""
        return self.trunk not in ("small", "patches")


@dataclass(frozen=True)
class AugmentConfig:
    resize_to: int = 0
    """Original copies: resized to this side, then cropped back at random; 0: left as they are."""
    crop_scale: tuple[float, float] | None = None
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    grey: float = 0.0
    """Probability."""
    flip: float = 0.0
    """Probability."""
    rotation: float = 0.0
    """Degrees either way."""
    shift: float = 0.0
    """Share of the side, either way."""
    scale: tuple[float, float] = (1.0, 1.0)
    shear: float = 0.0
    """Degrees either way."""
    noise: float = 0.0
    """Standard deviation, of pixels in [0, 1]."""


@dataclass(frozen=True)
class LossConfig:
    kind: Literal["dcdc", "iic"] = "dcdc"
    """dcdc: the two views and balance, by the settings below; iic: mutual information, which has
    no settings."""
    temperature: float = 0.5
    sample_weight: float = 1.0
    class_weight: float = 1.0
    balance_weight: float = 0.0
    spare_siblings: bool = False
    """Leave the other copies of the same image out of the negatives."""


@dataclass(frozen=True)
class InstanceConfig:
    """Before any head trains, features that perturbed copies of an image have in common."""

    kind: Literal["contrast", "prediction"] = "contrast"
    """contrast: the copies find each other among a batch; prediction: from one, what a slow copy
    of the network makes of the other, without a look at other images."""
    epochs: int = 0
    """0: none."""
    batch_size: int = 512
    copies: int = 2
    """Of each image; for prediction 2."""
    temperature: float = 0.2
    """Of the contrast."""
    momentum: float = 0.99
    """Of the slow copy: what a step leaves of it."""
    projection: int = 128
    """Numbers by which copies are compared."""
    learning_rate: float = 1e-3
    schedule: Literal["constant", "cosine"] = "cosine"
    warmup_epochs: float = 0.0

    @property
    def predicts(self) -> bool:
        return self.kind == "prediction"


@dataclass(frozen=True)
class SelfLabelConfig:
    """At the end, what the cluster head is sure of teaches it the rest."""

    epochs: int = 0
    """0: none."""
    batch_size: int | None = None
    """None: train.batch_size."""
    threshold: float = 0.99
    """Confidence from which an answer counts as a label."""
    learning_rate: float = 1e-4
    schedule: Literal["constant", "cosine"] = "cosine"


@dataclass(frozen=True)
class TrainConfig:
    epochs: int = 200
    """An epoch shows every image once to every head."""
    batch_size: int = 50
    n_repeats: int = 3
    heads: Literal["alternate", "joint"] = "alternate"
    """alternate: a pass for the over-clustering head, then one for the cluster head; joint: both
    heads in every step."""
    over_clustering_first: float = 0.0
    """Epochs in which the over-clustering head trains alone, to find features first; below 1:
    that share of the epochs."""
    head_start: Literal["random", "k-means", "spherical-k-means"] = "random"
    """How the cluster head starts: as initialised, or from K-Means on the features so far;
    spherical: on their directions alone, for features of instance contrast."""
    neighbours: int = 0
    """The perturbed copies are of one of this many nearest neighbours, by the features with which
    the heads begin; 0: of the image itself."""
    learning_rate: float = 1e-3
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_epochs: float = 0.0
    precision: Precision = "auto"
    """Of products; weights, losses and statistics are float32. auto: bfloat16 on CUDA."""
    passes: Literal["auto", "one", "two"] = "auto"
    """Original and perturbed copies through the network together, with batch-norm statistics per
    copy group, or one after the other: the same meaning. auto: one on CUDA, and where
    processes share a batch."""
    capture: bool = True
    """On CUDA, the whole step as one graph."""
    compile: Literal["auto", "on", "off"] = "auto"
    """On CUDA, perturbations and losses through torch.compile; auto: in long runs."""
    seed: int = 0
    device: Device = "auto"
    threads: int = 0
    """CPU threads; 0: as many as torch takes. Small networks are fastest, and give the same
    numbers on every machine, with 1."""
    evaluate_every: int = 1
    """Epochs between looks at the whole partition."""
    checkpoint_every: int = 10
    """Epochs."""
    keep_checkpoints: int = 2


@dataclass(frozen=True)
class RunConfig:
    n_clusters: int | None = None
    """None: the number of classes, where the images have targets."""
    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    instance: InstanceConfig = field(default_factory=InstanceConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    self_label: SelfLabelConfig = field(default_factory=SelfLabelConfig)

    def __post_init__(self) -> None:
        check_values(flat(self))


# Keys that cannot change what comes out of a run, so a resumed run may change them.
NEUTRAL_KEYS = frozenset(
    f"train.{name}"
    for name in (
        *("device", "passes", "capture", "compile"),
        *("checkpoint_every", "keep_checkpoints"),
    )
)


def from_mapping(mapping: Mapping[str, Any], start: RunConfig | None = None) -> RunConfig:
    """A nested mapping (TOML, JSON) laid over `start`."""
    return with_values(start or RunConfig(), flatten(mapping))


def from_toml(path: Path, start: RunConfig | None = None) -> RunConfig:
    try:
        mapping = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read config {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"config {path} is not valid TOML: {error}") from None
    return from_mapping(mapping, start)


def with_settings(config: RunConfig, settings: Iterable[str]) -> RunConfig:
    """`section.key=value` as typed on a command line, laid over `config`."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting!r} has no value: write section.key=value")
        values[key.strip()] = parse_value(text.strip())
    return with_values(config, values)


def with_values(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """Flat `section.key` values, checked for name and type, laid over `config`."""
    nested: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        nested.setdefault(section, {})[name] = coerce_value(key, value, type_of_key(key, RunConfig))
    top = nested.pop("", {})
    for section, changes in nested.items():
        top[section] = dataclasses.replace(getattr(config, section), **changes)
    return dataclasses.replace(config, **top)


def to_mapping(config: RunConfig) -> dict[str, Any]:
    """Nested plain values, fit for JSON."""
    return dataclasses.asdict(config)


def flat(config: RunConfig) -> dict[str, Any]:
    """Every value by its `section.key`."""
    return flatten(to_mapping(config))


def differences(ours: RunConfig, theirs: RunConfig) -> dict[str, tuple[Any, Any]]:
    """The keys whose values differ, with both values; neutral keys do not count."""
    left, right = flat(ours), flat(theirs)
    return {
        key: (left[key], right[key])
        for key in left
        if left[key] != right[key] and key not in NEUTRAL_KEYS
    }

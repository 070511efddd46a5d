"""The settings of a run that belong to no phase: frozen dataclasses, one for each section."""

from dataclasses import dataclass
from typing import Annotated, Literal

from dcdc.config.ranges import SHARE, Range

Sizes = Literal["equal", "free"] | tuple[float, ...]
Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class DataConfig:
    source: str = ""
    """Built-in name, folder of images, Parquet, list of paths, .npy or .npz file; or a file of
    feature vectors."""
    size: Annotated[int | None, Range(8, 512, unit="pixels")] = None
    """Side in pixels that images are brought to; None: the source's own."""
    target: str | None = None
    """Label column of Parquet or of a list, to score against; "none": no labels."""
    on_bad: Literal["refuse", "skip"] = "refuse"
    """What to do with an image that cannot be read."""
    column: str | None = None
    """Which column, array or tensor holds the feature vectors, where several could."""
    n_features: Annotated[int | None, Range(1, most=1_000_000)] = None
    """Of a feature vector; None: the source's own, or it holds images."""


@dataclass(frozen=True)
class NetworkConfig:
    backbone: str = "resnet18"
    """A registered one (dcdc.networks.BACKBONES), or a pretrained one: timm:NAME, hf:NAME,
    torchvision:NAME, file:PATH. Unpooled: the stages see the image at its full size, for tiny
    images; four times the work. Small: for tiny images on a CPU. Patches: for photos there; its
    dictionary is found first. Convnet: six plain convolutions. Vectors: features are given."""
    frozen: bool = False
    """A pretrained backbone's weights stay as they are: its features are computed once and kept,
    and the heads train on them."""
    backbone_rate: Annotated[float, Range(0, 1, above=True)] = 1.0
    """Learning rate of the backbone, as a share of the phase's: below 1 where pretrained weights
    are fine-tuned."""
    input_size: Annotated[int | None, Range(8, 1024, unit="pixels")] = None
    """Side in pixels that a pretrained backbone is given; None: its own."""
    sobel: bool = False
    over_clusters: Annotated[int, Range(2, most=100_000, zero="no over-clustering head")] = 70
    """Clusters of the over-clustering head; 0: no such head."""
    sub_heads: Annotated[int, Range(1, most=1_000)] = 1
    """Heads of each kind, trained side by side; the one whose own loss is lowest answers."""
    mean: Annotated[tuple[float, ...] | None, Range()] = None
    std: Annotated[tuple[float, ...] | None, Range(0, above=True)] = None
    """Per channel, of pixels in [0, 1]; None: measured on the images."""


@dataclass(frozen=True)
class AugmentConfig:
    resize_to: Annotated[int, Range(8, 1024, zero="as they are", unit="pixels")] = 0
    """Original copies: resized to this side, then cropped back at random; 0: left as they are."""
    crop_scale: tuple[float, float] | None = None
    brightness: Annotated[float, Range(0)] = 0.0
    contrast: Annotated[float, Range(0)] = 0.0
    saturation: Annotated[float, Range(0)] = 0.0
    hue: Annotated[float, Range(0, 0.5)] = 0.0
    grey: Annotated[float, SHARE] = 0.0
    """Probability."""
    flip: Annotated[float, SHARE] = 0.0
    """Probability."""
    rotation: Annotated[float, Range(0, 180)] = 0.0
    """Degrees either way."""
    shift: Annotated[float, SHARE] = 0.0
    """Share of the side, either way."""
    scale: tuple[float, float] = (1.0, 1.0)
    shear: Annotated[float, Range(0, 89)] = 0.0
    """Degrees either way."""
    noise: Annotated[float, Range(0)] = 0.0
    """Standard deviation, of pixels in [0, 1]."""


@dataclass(frozen=True)
class TrainConfig:
    """How the phases are carried out."""

    precision: Precision = "auto"
    """Of products; weights, losses and statistics are float32. auto: bfloat16 on CUDA."""
    capture: bool = True
    """On CUDA, the whole step as one graph."""
    compile: Literal["auto", "on", "off"] = "auto"
    """On CUDA, perturbations and losses through torch.compile; auto: in long runs."""
    seed: Annotated[int, Range(0, 2**63 - 1)] = 0
    device: Device = "auto"
    threads: Annotated[int, Range(0, most=1024)] = 0
    """CPU threads; 0: as many as torch takes. Small networks are fastest, and give the same
    numbers on every machine, with 1."""
    evaluate_every: Annotated[int, Range(1)] = 1
    """Epochs between looks at the whole partition."""
    checkpoint_every: Annotated[int, Range(1)] = 10
    """Epochs."""
    keep_checkpoints: Annotated[int, Range(1)] = 2

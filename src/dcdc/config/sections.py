"""The settings of a run that belong to no phase: frozen dataclasses, one for each section."""

from dataclasses import dataclass
from typing import Literal

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class DataConfig:
    source: str = ""
    """Built-in name, folder of images, Parquet, list of paths, .npy or .npz file; or a file of
    feature vectors."""
    size: int | None = None
    """Side in pixels that images are brought to; None: the source's own."""
    target: str | None = None
    """Label column of Parquet or of a list, to score against; "none": no labels."""
    on_bad: Literal["refuse", "skip"] = "refuse"
    """What to do with an image that cannot be read."""
    column: str | None = None
    """Which column, array or tensor holds the feature vectors, where several could."""
    n_features: int | None = None
    """Of a feature vector; None: the source's own, or it holds images."""


@dataclass(frozen=True)
class NetworkConfig:
    backbone: str = "resnet18"
    """A registered one (dcdc.networks.BACKBONES), or a pretrained one: timm:NAME, hf:NAME,
    torchvision:NAME, file:PATH. Unpooled: the stages see the image at its full size, for tiny
    images; four times the work. Small: for tiny images on a CPU. Patches: for photos there; its
    dictionary is found first. Vectors: features are given."""
    frozen: bool = False
    """A pretrained backbone's weights stay as they are: its features are computed once and kept,
    and the heads train on them."""
    backbone_rate: float = 1.0
    """Learning rate of the backbone, as a share of the phase's: below 1 where pretrained weights
    are fine-tuned."""
    input_size: int | None = None
    """Side in pixels that a pretrained backbone is given; None: its own."""
    sobel: bool = False
    over_clusters: int = 70
    """Clusters of the over-clustering head; 0: no such head."""
    sub_heads: int = 1
    """Heads of each kind, trained side by side; the one whose own loss is lowest answers."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    """Per channel, of pixels in [0, 1]; None: measured on the images."""


@dataclass(frozen=True)
class AugmentConfig:
    resize_to: int = 0
    """Original copies: resized to this side, then cropped back at random; 0: left as they are."""
    crop_scale: tuple[float, float] | None = None
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
class TrainConfig:
    """How the phases are carried out."""

    precision: Precision = "auto"
    """Of products; weights, losses and statistics are float32. auto: bfloat16 on CUDA."""
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

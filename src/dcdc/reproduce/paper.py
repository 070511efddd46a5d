"""The figures that the paper publishes for DCDC, as its tables print them.

Each is the paper's best epoch, chosen by the true labels. Tables 2 and 3 hold no figures: they are
the sets' sizes and the hyper-parameters, which the `*-paper` presets follow. The paper writes
CIFAR-100 for what is `cifar100-20` here, CIFAR-100 against its 20 super-classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100-20": "CIFAR-100-20",
    "stl10": "STL-10",
    "imagenet-10": "ImageNet-10",
    "imagenet-dogs": "ImageNet-Dogs",
    "tiny-imagenet": "Tiny-ImageNet",
}
"""The data sets in the paper's order."""


@dataclass(frozen=True)
class Published:
    """Tables 4 to 6 print ACC alone."""

    acc: float
    nmi: float | None = None
    ari: float | None = None


def _published(nmi: float, acc: float, ari: float) -> Published:
    """In the paper's order of columns."""
    return Published(acc=acc, nmi=nmi, ari=ari)


# Table 1, last row.
DCDC: Mapping[str, Published] = {
    "cifar10": _published(0.585, 0.699, 0.506),
    "cifar100-20": _published(0.310, 0.349, 0.179),
    "stl10": _published(0.621, 0.734, 0.547),
    "imagenet-10": _published(0.817, 0.879, 0.787),
    "imagenet-dogs": _published(0.360, 0.365, 0.207),
    "tiny-imagenet": _published(0.323, 0.164, 0.073),
}

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
    100: _published(0.267, 0.296, 0.142),
    200: _published(0.310, 0.349, 0.179),
    300: _published(0.316, 0.342, 0.179),
    400: _published(0.305, 0.323, 0.165),
    500: _published(0.305, 0.325, 0.168),
    1000: _published(0.290, 0.302, 0.155),
}

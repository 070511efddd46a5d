"""The figures that the paper publishes, as its tables print them.

The paper does not say of which epoch DCDC's are; its authors' code reports the best one, chosen by
the true labels. Tables 2 and 3 hold no figures: they are the sets' sizes and the hyper-parameters,
which the `*-paper` presets follow. The paper writes
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
    """Tables 4 to 6, and some rows of table 1, print ACC alone."""

    acc: float
    nmi: float | None = None
    ari: float | None = None


def _published(nmi: float, acc: float, ari: float) -> Published:
    """In the paper's order of columns."""
    return Published(acc=acc, nmi=nmi, ari=ari)


# Table 1, by method and data set; the paper took all but its own row from others' publications.
COMPARISON: Mapping[str, Mapping[str, Published]] = {
    "k-means": {
        "cifar10": _published(0.087, 0.229, 0.049),
        "cifar100-20": _published(0.084, 0.130, 0.028),
        "stl10": _published(0.125, 0.192, 0.061),
        "imagenet-10": _published(0.119, 0.241, 0.057),
        "imagenet-dogs": _published(0.055, 0.105, 0.020),
        "tiny-imagenet": _published(0.065, 0.025, 0.005),
    },
    "sc": {
        "cifar10": _published(0.103, 0.247, 0.085),
        "cifar100-20": _published(0.090, 0.136, 0.022),
        "stl10": _published(0.098, 0.159, 0.048),
        "imagenet-10": _published(0.151, 0.274, 0.076),
        "imagenet-dogs": _published(0.038, 0.111, 0.013),
        "tiny-imagenet": _published(0.063, 0.022, 0.004),
    },
    "ac": {
        "cifar10": _published(0.105, 0.228, 0.065),
        "cifar100-20": _published(0.098, 0.138, 0.034),
        "stl10": _published(0.239, 0.332, 0.140),
        "imagenet-10": _published(0.138, 0.242, 0.067),
        "imagenet-dogs": _published(0.037, 0.139, 0.021),
        "tiny-imagenet": _published(0.069, 0.027, 0.005),
    },
    "nmf": {
        "cifar10": _published(0.081, 0.190, 0.034),
        "cifar100-20": _published(0.079, 0.118, 0.026),
        "stl10": _published(0.096, 0.180, 0.046),
        "imagenet-10": _published(0.132, 0.230, 0.065),
        "imagenet-dogs": _published(0.044, 0.118, 0.016),
        "tiny-imagenet": _published(0.072, 0.029, 0.005),
    },
    "ae": {
        "cifar10": _published(0.239, 0.314, 0.169),
        "cifar100-20": _published(0.100, 0.165, 0.048),
        "stl10": _published(0.250, 0.303, 0.161),
        "imagenet-10": _published(0.210, 0.317, 0.152),
        "imagenet-dogs": _published(0.104, 0.185, 0.073),
        "tiny-imagenet": _published(0.131, 0.041, 0.007),
    },
    "dae": {
        "cifar10": _published(0.251, 0.297, 0.163),
        "cifar100-20": _published(0.111, 0.151, 0.046),
        "stl10": _published(0.224, 0.302, 0.152),
        "imagenet-10": _published(0.206, 0.304, 0.138),
        "imagenet-dogs": _published(0.104, 0.190, 0.078),
        "tiny-imagenet": _published(0.127, 0.039, 0.007),
    },
    "dcgan": {
        "cifar10": _published(0.265, 0.315, 0.176),
        "cifar100-20": _published(0.120, 0.151, 0.045),
        "stl10": _published(0.210, 0.298, 0.139),
        "imagenet-10": _published(0.225, 0.346, 0.157),
        "imagenet-dogs": _published(0.121, 0.174, 0.078),
        "tiny-imagenet": _published(0.135, 0.041, 0.007),
    },
    "decnn": {
        "cifar10": _published(0.240, 0.282, 0.174),
        "cifar100-20": _published(0.092, 0.133, 0.038),
        "stl10": _published(0.227, 0.299, 0.162),
        "imagenet-10": _published(0.186, 0.313, 0.142),
        "imagenet-dogs": _published(0.098, 0.175, 0.073),
        "tiny-imagenet": _published(0.111, 0.035, 0.006),
    },
    "vae": {
        "cifar10": _published(0.245, 0.291, 0.167),
        "cifar100-20": _published(0.108, 0.152, 0.040),
        "stl10": _published(0.200, 0.282, 0.146),
        "imagenet-10": _published(0.193, 0.334, 0.168),
        "imagenet-dogs": _published(0.107, 0.179, 0.079),
        "tiny-imagenet": _published(0.113, 0.036, 0.006),
    },
    "jule": {
        "cifar10": _published(0.192, 0.272, 0.138),
        "cifar100-20": _published(0.103, 0.137, 0.033),
        "stl10": _published(0.182, 0.277, 0.164),
        "imagenet-10": _published(0.175, 0.300, 0.138),
        "imagenet-dogs": _published(0.054, 0.138, 0.028),
        "tiny-imagenet": _published(0.102, 0.033, 0.006),
    },
    "dec": {
        "cifar10": _published(0.257, 0.301, 0.161),
        "cifar100-20": _published(0.136, 0.185, 0.050),
        "stl10": _published(0.276, 0.359, 0.186),
        "imagenet-10": _published(0.282, 0.381, 0.203),
        "imagenet-dogs": _published(0.122, 0.195, 0.079),
        "tiny-imagenet": _published(0.115, 0.037, 0.007),
    },
    "dac": {
        "cifar10": _published(0.396, 0.522, 0.306),
        "cifar100-20": _published(0.185, 0.238, 0.088),
        "stl10": _published(0.366, 0.470, 0.257),
        "imagenet-10": _published(0.394, 0.527, 0.302),
        "imagenet-dogs": _published(0.219, 0.275, 0.111),
        "tiny-imagenet": _published(0.190, 0.066, 0.017),
    },
    "adc": {
        "cifar10": Published(0.325),
        "cifar100-20": Published(0.160),
        "stl10": Published(0.530),
    },
    "ddc": {
        "cifar10": _published(0.424, 0.524, 0.329),
        "stl10": _published(0.371, 0.489, 0.267),
        "imagenet-10": _published(0.433, 0.577, 0.345),
    },
    "dccm": {
        "cifar10": _published(0.496, 0.623, 0.408),
        "cifar100-20": _published(0.285, 0.327, 0.173),
        "stl10": _published(0.376, 0.482, 0.262),
        "imagenet-10": _published(0.608, 0.710, 0.555),
        "imagenet-dogs": _published(0.321, 0.383, 0.182),
        "tiny-imagenet": _published(0.224, 0.108, 0.038),
    },
    "iic": {
        "cifar10": Published(0.617),
        "cifar100-20": Published(0.257),
        "stl10": Published(0.610),
    },
    "pica": {
        "cifar10": _published(0.591, 0.696, 0.512),
        "cifar100-20": _published(0.310, 0.337, 0.171),
        "stl10": _published(0.611, 0.713, 0.531),
        "imagenet-10": _published(0.802, 0.870, 0.761),
        "imagenet-dogs": _published(0.352, 0.352, 0.201),
        "tiny-imagenet": _published(0.277, 0.098, 0.040),
    },
    "dcdc": {
        "cifar10": _published(0.585, 0.699, 0.506),
        "cifar100-20": _published(0.310, 0.349, 0.179),
        "stl10": _published(0.621, 0.734, 0.547),
        "imagenet-10": _published(0.817, 0.879, 0.787),
        "imagenet-dogs": _published(0.360, 0.365, 0.207),
        "tiny-imagenet": _published(0.323, 0.164, 0.073),
    },
}
DCDC = COMPARISON["dcdc"]

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

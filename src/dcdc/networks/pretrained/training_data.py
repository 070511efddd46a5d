"""Which data trained weights, and whether labels did, by the tags that libraries give them.

`augreg_in21k_ft_in1k` is ImageNet-21k, then ImageNet-1k, with labels; `lvd142m` is without; `dino`
is ImageNet-1k without. What no rule knows stays unknown: it is never guessed.
"""

import re

UNKNOWN = "unknown"

_LABELLED = {
    "in1k": "ImageNet-1k",
    "in12k": "ImageNet-12k",
    "in21k": "ImageNet-21k",
    "inw21k": "ImageNet-21k",
    "in22k": "ImageNet-22k",
    "jft": "JFT-300M",
}
_IMAGES = {
    "lvd142m": "LVD-142M",
    "lvd1689m": "LVD-1689M",
    "sat493m": "SAT-493M",
    "seer": "Instagram images",
}
_PAIRS = {
    "openai": "OpenAI's WIT",
    "laion2b": "LAION-2B",
    "laion400m": "LAION-400M",
    "laiona": "LAION-A",
    "webli": "WebLI",
    "datacompxl": "DataComp-1B",
    "datacomp1b": "DataComp-1B",
    "dfn2b": "DFN-2B",
    "dfn5b": "DFN-5B",
    "metaclip": "MetaCLIP's pairs",
    "metaclip2": "MetaCLIP 2's pairs",
    "merged2b": "Merged-2B",
    "yfcc15m": "YFCC-15M",
    "cc12m": "CC12M",
}
_WITHOUT_LABELS = {"dino", "mae", "fcmae", "ijepa"}
"""Methods; alone in a tag they stand for ImageNet-1k."""
_UNCLEAR = {"mim", "eupe", "distilled", "swag", "wsl", "swsl"}
"""Methods whose teachers or hashtags had labels of some kind."""


def of_tag(tag: str) -> tuple[str, bool | None]:
    """(which data, whether labels did) of a tag: words joined by underscores."""
    words = re.split(r"[_\-]", tag.lower())
    data = [_named(word) for word in words if word in {**_LABELLED, **_IMAGES, **_PAIRS}]
    methods = _WITHOUT_LABELS.intersection(words)
    if not data and methods:
        data = [_LABELLED["in1k"]]
    if not data:
        return UNKNOWN, None
    return ", then ".join(dict.fromkeys(data)), _uses_labels(words)


def _uses_labels(words: list[str]) -> bool | None:
    if "ft" in words:  # fine-tuned, always on classes
        return True
    if _UNCLEAR.intersection(words):
        return None
    if _WITHOUT_LABELS.intersection(words):
        return False
    return bool(set(_LABELLED).intersection(words))


def _named(word: str) -> str:
    if word in _PAIRS:
        return f"image-text pairs of the web ({_PAIRS[word]})"
    return _LABELLED.get(word) or _IMAGES[word]


def of_name(name: str) -> tuple[str, bool | None]:
    """Of a repository of the hub, `owner/name`, where the name says it."""
    known = (
        (r"^facebook/dinov2-", ("LVD-142M", False)),
        (r"^facebook/dinov3-.*lvd1689m", ("LVD-1689M", False)),
        (r"^facebook/dino-", ("ImageNet-1k", False)),
        (r"^facebook/vit-mae-", ("ImageNet-1k", False)),
        (r"^facebook/(deit|convnext|regnet|levit)-.*22k", ("ImageNet-22k", True)),
        (r"^facebook/(deit|convnext|levit)-", ("ImageNet-1k", True)),
        (r"^openai/clip-", (_named("openai"), False)),
        (r"^laion/.*laion2b", (_named("laion2b"), False)),
        (r"^google/siglip", (_named("webli"), False)),
        (r"^google/vit-.*in21k$", ("ImageNet-21k", True)),
        (r"^google/vit-", ("ImageNet-21k, then ImageNet-1k", True)),
        (r"^microsoft/(resnet|swin)-(?!.*22k)", ("ImageNet-1k", True)),
    )
    return next((found for rule, found in known if re.search(rule, name.lower())), (UNKNOWN, None))


def licence_named(licence: str | None) -> str:
    """As SPDX spells it, where it knows it."""
    spelled = {
        "apache-2.0": "Apache-2.0",
        "mit": "MIT",
        "bsd-3-clause": "BSD-3-Clause",
        "cc-by-nc-4.0": "CC-BY-NC-4.0",
        "cc-by-4.0": "CC-BY-4.0",
    }
    return spelled.get((licence or "").lower(), licence or UNKNOWN)

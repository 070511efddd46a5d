"""Which pretrained backbones can be used here and now, without a network.

Nothing heavy is imported and no weight is read: packages are looked up, and the hub's cache.
"""

from dataclasses import dataclass
from pathlib import Path

from dcdc.networks.pretrained import efficientnet_lite0
from dcdc.networks.pretrained.requirements import is_installed
from dcdc.networks.pretrained.training_data import of_name, of_tag
from dcdc.networks.pretrained.weight_files import WEIGHT_FILE, cached_file


@dataclass(frozen=True)
class Available:
    spec: str
    """As `find_backbone` takes it."""
    trained_on: str
    uses_labels: bool | None
    """None: unknown."""
    images_per_second: int | None = None
    """Of one CPU thread at the backbone's own size, about; None: not measured."""
    megabytes: int | None = None
    """Of its weight file."""


def describe_available() -> list[Available]:
    """The cheapest first: those that come in packages, then what the hub's cache holds."""
    found = []
    if efficientnet_lite0.is_available():
        told = efficientnet_lite0.EFFICIENTNET_LITE0.pretrained
        assert told is not None
        found.append(
            Available(
                efficientnet_lite0.SPEC,
                told.trained_on,
                told.uses_labels,
                efficientnet_lite0.IMAGES_PER_SECOND,
                megabytes=19,
            )
        )
    cached = [each for repo in _cached_repositories() if (each := _of_repository(repo))]
    return found + sorted(cached, key=lambda each: (each.megabytes or 0, each.spec))


def _cached_repositories() -> list[str]:
    if not is_installed("huggingface_hub"):
        return []
    from huggingface_hub import constants

    folders = sorted(Path(constants.HF_HUB_CACHE).glob("models--*--*"))
    return ["/".join(folder.name.split("--", 2)[1:]) for folder in folders]


def _of_repository(repo: str) -> Available | None:
    weights = cached_file(repo, WEIGHT_FILE)
    if weights is None:
        return None
    megabytes = round(weights.stat().st_size / 1e6)
    owner, _, name = repo.partition("/")
    if owner == "timm" and is_installed("timm") and is_installed("torchvision"):
        return Available(f"timm:{name}", *of_tag(name.partition(".")[2]), megabytes=megabytes)
    processor = cached_file(repo, "preprocessor_config.json")
    is_vision = processor is not None and "image_mean" in processor.read_text(encoding="utf-8")
    if is_vision and is_installed("transformers") and cached_file(repo, "config.json"):
        return Available(f"hf:{repo}", *of_name(repo), megabytes=megabytes)
    return None

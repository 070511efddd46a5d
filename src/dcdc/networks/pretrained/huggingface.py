"""Backbones of transformers: `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION`, or a folder, `hf:./FOLDER`.

A folder holds config.json, preprocessor_config.json and model.safetensors. Of models of images and
text the vision tower is taken. Nothing of a repository is ever run, and no pickle is opened.
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.fitting import AsRGB, load_fitting, require_grey_or_rgb, trunk_of
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.training_data import licence_named, of_name
from dcdc.networks.pretrained.weight_files import (
    WEIGHT_FILE,
    cached_file,
    hub_file,
    read_safetensors,
    require_file,
)
from dcdc.runtime.environment import expanded
from dcdc.stored.files import BACKBONE_SETTINGS

CONFIG_FILE = "config.json"
PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True)
class Place:
    """Where the files of a model are: a folder here, or a repository of the hub."""

    spec: str
    folder: Path | None
    repo: str = ""
    revision: str | None = None

    def file(self, name: str) -> Path:
        if self.folder is not None:
            require_file(self.folder / name)
            return self.folder / name
        otherwise = f"place {name} with the model's other files in a folder, as hf:./FOLDER"
        return hub_file(self.repo, name, of=self.spec, otherwise=otherwise, revision=self.revision)

    def small_file(self, *names: str) -> Path | None:
        """The first of these that there is."""
        for name in names:
            if self.folder is not None:
                if (self.folder / name).is_file():
                    return self.folder / name
                continue
            found = cached_file(self.repo, name, self.revision)
            if found is not None:
                return found
            try:
                return self.file(name)
            except InputError:
                continue
        return None


def hugging_face_backbone(rest: str) -> Backbone:
    place = _place(rest)
    transformers = _transformers(place)
    config = _vision_config(transformers, place)
    processor = place.small_file(*PROCESSOR_FILES)
    if processor is None:
        raise InputError(
            f"the backbone {place.spec} has no {PROCESSOR_FILES[0]}, which says how its images are"
            " normalised",
            remedy="place it beside config.json",
        )
    told = _told(place, BACKBONE_SETTINGS.read(processor), config)
    build = partial(VisionTower, transformers, config, place.spec)
    files = (place.file(CONFIG_FILE), processor)
    return Backbone(build, load_weights=partial(_load, place), pretrained=told, files=files)


def _place(rest: str) -> Place:
    spec = f"hf:{rest}"
    folder = expanded(rest)
    if folder.is_dir():
        return Place(spec, folder)
    if rest.startswith((".", "/", "~")):
        raise InputError(f"the backbone {spec}: there is no folder {folder}")
    repo, _, revision = rest.partition("@")
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo):
        raise InputError(f"the backbone {spec}: a repository of the hub is written OWNER/NAME")
    return Place(spec, None, repo, revision or None)


def _transformers(place: Place) -> Any:
    return required("transformers", of=f"the backbone {place.spec}", extra="hf")


def _vision_config(transformers: Any, place: Place) -> Any:
    path = place.file(CONFIG_FILE)
    try:
        config = transformers.AutoConfig.from_pretrained(path.parent, local_files_only=True)
    except Exception as error:
        raise InputError(f"transformers cannot read {path}: {first_line(error)}") from error
    return getattr(config, "vision_config", None) or config


def _told(place: Place, processor: dict[str, Any], config: Any) -> Pretrained:
    processor = processor.get("image_processor", processor)
    trained_on, uses_labels = of_name(place.repo)
    try:
        mean, std = processor["image_mean"], processor["image_std"]
    except KeyError as missing:
        raise InputError(
            f"the backbone {place.spec}: its preprocessor_config.json has no {missing.args[0]}"
        ) from None
    return Pretrained(
        size=_size(processor, config),
        mean=tuple(mean),
        std=tuple(std),
        licence=licence_named(_licence(place)),
        trained_on=trained_on,
        uses_labels=uses_labels,
        name=place.spec,
    )


def _size(processor: dict[str, Any], config: Any) -> int:
    """Of the image that the model sees: after the crop, where there is one."""
    crops = processor.get("do_center_crop") and processor.get("crop_size")
    given: Any = crops or processor.get("size") or getattr(config, "image_size", 224)
    if isinstance(given, dict):
        sides = [given[key] for key in ("height", "shortest_edge", "longest_edge") if key in given]
        given = sides[0] if sides else getattr(config, "image_size", 224)
    return int(given[0] if isinstance(given, list | tuple) else given)


def _licence(place: Place) -> str | None:
    """As the model card's head says it."""
    card = place.small_file("README.md")
    if card is None:
        return None
    head = re.match(r"---\n(.*?)\n---", card.read_text(encoding="utf-8", errors="replace"), re.S)
    found = re.search(r"^license:\s*(\S+)", head[1] if head else "", re.M)
    return found[1].strip("'\"") if found else None


def _load(place: Place, module: nn.Module) -> None:
    """By transformers, which knows the names that weights had before; then into our module."""
    if place.folder is not None and not (place.folder / WEIGHT_FILE).is_file():
        raise InputError(
            f"there is no {WEIGHT_FILE} in {place.folder}; pickles (.bin) can run code and are"
            " refused",
            remedy="save the model by save_pretrained",
        )
    path = place.file(WEIGHT_FILE)
    read_safetensors(path)  # damaged files are told of here
    tower = trunk_of(module)
    kind: Any = type(tower)
    config: Any = tower.config
    try:
        with _quiet(_transformers(place)):
            loaded, found = kind.from_pretrained(
                path.parent,
                config=config,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except Exception as error:
        raise InputError(f"the weights of {path} do not fit: {first_line(error)}") from error
    own = tower.state_dict()
    for name, *shapes in sorted(found["mismatched_keys"]):
        there, here = (" x ".join(map(str, shape)) for shape in shapes)
        raise InputError(
            f"the weights of {path} do not fit: its {name} is {there} where the backbone has {here}"
        )
    missing = sorted(name for name in found["missing_keys"] if name in own)
    if missing:
        raise InputError(f"the weights of {path} do not fit: it has no {missing[0]}")
    state = {name: tensor for name, tensor in loaded.state_dict().items() if name in own}
    load_fitting(tower, state, origin=str(path))


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Its report of weights that a tower does not take is of no use here."""
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


class VisionTower(nn.Module):
    """What the model itself pools, or its class token, or the mean of its tokens or map."""

    def __init__(self, transformers: Any, config: Any, spec: str, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, spec)
        self.as_rgb = AsRGB()
        if hasattr(config, "mask_ratio"):
            config.mask_ratio = 0.0  # a masked autoencoder would hide most of the image
        self.trunk = _built(transformers, config, spec)
        self.n_features = _width(config, spec)
        names = [name.rpartition(".")[2] for name, _ in self.trunk.named_parameters()]
        self.has_class_token = "cls_token" in names or "class_embedding" in names
        self.side = getattr(config, "image_size", None)
        self.interpolates = (
            "interpolate_pos_encoding" in inspect.signature(self.trunk.forward).parameters
        )

    def forward(self, x: Tensor) -> Tensor:
        other_side = self.interpolates and self.side is not None and x.shape[-1] != self.side
        how = {"interpolate_pos_encoding": True} if other_side else {}
        out = self.trunk(pixel_values=self.as_rgb(x), **how)
        pooled: Tensor | None = getattr(out, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)  # convolutional models leave a map of one pixel
        last: Tensor = out.last_hidden_state
        if last.dim() == 4:
            return last.mean((2, 3))
        return last[:, 0] if self.has_class_token else last.mean(1)


def _built(transformers: Any, config: Any, spec: str) -> Any:
    try:
        model = transformers.AutoModel.from_config(config).float()
    except Exception as error:
        raise InputError(
            f"transformers cannot build the backbone {spec}: {first_line(error)}"
        ) from error
    if "pixel_values" not in inspect.signature(model.forward).parameters:
        raise InputError(f"the backbone {spec} ({type(model).__name__}) is no model of images")
    if hasattr(getattr(model, "pooler", None), "dense"):
        model.pooler = None  # few weights have this layer: it would stay as it was drawn
    return model


def _width(config: Any, spec: str) -> int:
    width = getattr(config, "hidden_size", None) or getattr(config, "hidden_sizes", [None])[-1]
    if width is None:
        raise InputError(f"the backbone {spec} does not say how many features it has")
    return int(width)

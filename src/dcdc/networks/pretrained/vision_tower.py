"""A vision model of transformers as a backbone: its pooled output, B x D."""

import inspect
from typing import Any

from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.networks.pretrained.channels import AsRGB, require_grey_or_rgb


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

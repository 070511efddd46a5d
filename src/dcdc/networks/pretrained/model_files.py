"""Backbones of one file: `file:PATH`, a program of torch.export (.pt2) or an ONNX model (.onnx).

Weights alone (.safetensors) name no architecture: `timm:NAME@PATH` does. A file that may hold a
pickle is refused. What is known of a file stands beside it; see `file_card`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.networks.backbones import Backbone
from dcdc.networks.pretrained.exported_program import ExportedProgram
from dcdc.networks.pretrained.file_card import card_path, read_card
from dcdc.networks.pretrained.fitting import (
    AsRGB,
    load_fitting,
    pooled,
    require_grey_or_rgb,
    trunk_of,
)
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.weight_files import require_file
from dcdc.runtime.environment import expanded

PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib")


class OnnxModel(nn.Module):
    """Run by onnxruntime: images to its first output, without a gradient.

    Has no weights of its own in torch: its file must stay where it is."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._session: Any = None
        given = self.session.get_inputs()
        are_images = len(given) == 1 and len(given[0].shape) == 4
        if not are_images or given[0].shape[1] in (1, 2) or given[0].shape[-1] == 3:
            raise InputError(f"{path} does not take images, B x 3 x H x W")
        if given[0].type != "tensor(float)":
            raise InputError(f"{path} takes {given[0].type}, not 32-bit floats")
        batch, _, side, _ = given[0].shape
        self.batch: int | None = batch if isinstance(batch, int) else None
        self.side: int | None = side if isinstance(side, int) else None
        self.extra: dict[str, str] = dict(self.session.get_modelmeta().custom_metadata_map)

    @property
    def session(self) -> Any:
        if self._session is None:
            self._session = _opened(self.path)
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}  # a copy opens the file again

    def forward(self, x: Tensor) -> Tensor:
        (given,) = self.session.get_inputs()
        images = x.detach().to("cpu", torch.float32).contiguous().numpy()
        first = self.session.run(None, {given.name: images})[0]
        return torch.from_numpy(first).to(x.device)


def _opened(path: Path) -> Any:
    onnxruntime = required("onnxruntime", of=f"the backbone file:{path}", extra="onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"onnxruntime cannot open {path}: {first_line(error)}") from None


Opened = ExportedProgram | OnnxModel
KINDS: dict[str, Callable[[Path], Opened]] = {".pt2": ExportedProgram, ".onnx": OnnxModel}


def file_backbone(rest: str) -> Backbone:
    path, spec = expanded(rest), f"file:{rest}"
    _require_kind(path)
    require_file(path)
    opened = KINDS[path.suffix](path)
    told = read_card(path, opened.extra, opened.side, spec)
    is_onnx = isinstance(opened, OnnxModel)
    return Backbone(
        partial(FileBackbone, path, told.size),
        load_weights=partial(_load, path),
        pretrained=told,
        trainable=not is_onnx,
        files=tuple(each for each in (path, card_path(path)) if each.is_file()),
    )


class FileBackbone(nn.Module):
    """What the file's model makes of images, B x D; a map or tokens are averaged."""

    def __init__(self, path: Path, size: int, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, f"file:{path}")
        self.as_rgb = AsRGB()
        self.trunk = KINDS[path.suffix](path)
        try:
            with torch.no_grad():
                self.n_features = self(torch.zeros(1, 3, size, size)).shape[1]
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{path} fails on an image of {size} pixels: {first_line(error)}"
            ) from error

    def forward(self, x: Tensor) -> Tensor:
        x = self.as_rgb(x)
        out: Tensor = self.trunk(x) if self.trunk.batch is None else self._by_fixed_batches(x)
        return pooled(out, str(self.trunk.path))

    def _by_fixed_batches(self, x: Tensor) -> Tensor:
        """A model of batches of one size gets them; the last is filled up with its last image."""
        n = self.trunk.batch or 1
        filling = -len(x) % n
        filled = torch.cat([x, x[-1:].expand(filling, -1, -1, -1)]) if filling else x
        parts = torch.split(filled, n)
        return torch.cat([self.trunk(part) for part in parts])[: len(x)]


def _require_kind(path: Path) -> None:
    if path.suffix in KINDS:
        return
    if path.suffix in PICKLES:
        raise InputError(
            f"{path} may be a pickle, which can run code when it is opened: refused",
            remedy="save its weights as .safetensors, or the model by torch.export.save as .pt2",
        )
    if path.suffix == ".safetensors":
        raise InputError(
            f"{path} holds weights alone",
            remedy="name their architecture too, as timm:NAME@PATH",
        )
    known = ", ".join(KINDS)
    raise InputError(f"{path} is none of the model files that can be read: {known}")


def _load(path: Path, module: nn.Module) -> None:
    load_fitting(trunk_of(module), KINDS[path.suffix](path).state_dict(), origin=str(path))

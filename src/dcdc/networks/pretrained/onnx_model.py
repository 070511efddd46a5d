"""An ONNX model, run by onnxruntime: images to its first output, without a gradient."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.networks.pretrained.requirements import required


class OnnxModel(nn.Module):
    """Has no weights of its own in torch: its file must stay where it is."""

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

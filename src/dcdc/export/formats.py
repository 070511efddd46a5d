"""A `.pt2` program, which `torch.export.load` opens without dcdc, or an `.onnx` model.

Exporters remark on packages that nobody needs and on torch's own code: that is left out.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.export.check import Agreement, Answer, require_agreement
from dcdc.export.exported_network import (
    OUTPUTS,
    ExportedNetwork,
    free_axes,
    input_name,
    metadata_of,
    trace,
)
from dcdc.runtime.atomic_files import atomic_file

_TALKERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")
METADATA = "dcdc.json"
"""The extra file inside the archive."""
_OPSETS = (25, 23, 21, 20)
"""Newest first: the first one that the exporter and onnxruntime, as installed, both take."""
_NEEDED = ("onnx", "onnxscript", "onnxruntime")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _TALKERS]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def export_torch(model: TrainedModel, path: Path) -> list[Agreement]:
    """Checked as read back from the disk, before it appears at `path`."""
    with atomic_file(path) as temporary, quiet_libraries():
        extra = {METADATA: json.dumps(metadata_of(model))}
        archive = BytesIO()  # so that a full disk is an OSError as everywhere
        torch.export.save(_traced(ExportedNetwork(model), model), archive, extra_files=extra)
        temporary.write_bytes(archive.getvalue())
        return require_agreement(model, open_torch(temporary))


def open_torch(path: Path) -> Answer:
    program = torch.export.load(path).module()

    def answer(images: np.ndarray) -> dict[str, np.ndarray]:
        with torch.inference_mode():
            outputs = program(torch.from_numpy(images))
        return {name: output.numpy() for name, output in outputs.items()}

    return answer


class _OpsetError(Exception):
    """The exporter does not reach this opset."""


def require_onnx() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(f"ONNX needs {', '.join(missing)}: pip install 'dcdc[onnx]'")


def export_onnx(model: TrainedModel, path: Path) -> list[Agreement]:
    """Checked by onnxruntime, as read back from the disk, before it appears at `path`."""
    require_onnx()
    with atomic_file(path) as temporary, quiet_libraries():
        network = ExportedNetwork(model)
        program, axes = _traced(network, model), free_axes(network)
        written = _newest_that_opens(program, input_name(model), axes, metadata_of(model))
        temporary.write_bytes(written)
        return require_agreement(model, open_onnx(temporary))


def open_onnx(model: Path | bytes) -> Answer:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    (given,) = session.get_inputs()

    def answer(images: np.ndarray) -> dict[str, np.ndarray]:
        outputs = session.run(list(OUTPUTS), {given.name: images})
        return dict(zip(OUTPUTS, outputs, strict=True))

    return answer


def _traced(network: ExportedNetwork, model: TrainedModel) -> torch.export.ExportedProgram:
    told = (model.config or {}).get("network", {})
    return trace(network, told.get("backbone", "of the model"))


def _newest_that_opens(
    program: torch.export.ExportedProgram,
    given: str,
    axes: dict[int, str],
    metadata: dict[str, str],
) -> bytes:
    for opset in _OPSETS[:-1]:
        try:
            written = _serialised(program, given, axes, metadata, opset)
            open_onnx(written)
        except Exception:  # an older exporter or runtime, each with errors of its own
            continue
        return written
    return _serialised(program, given, axes, metadata, _OPSETS[-1])


def _serialised(
    program: torch.export.ExportedProgram,
    given: str,
    axes: dict[int, str],
    metadata: dict[str, str],
    opset: int,
) -> bytes:
    exported: Any = torch.onnx.export(
        program,
        (),
        dynamo=True,
        opset_version=opset,
        input_names=[given],
        output_names=list(OUTPUTS),
        dynamic_shapes=(axes,),
        verbose=False,
    )
    model = exported.model
    if model.opset_imports[""] != opset:  # the exporter leaves what it cannot convert as it is
        raise _OpsetError(f"{model.opset_imports['']} instead of {opset}")
    model.producer_name, model.producer_version = "dcdc", metadata["dcdc"]
    model.metadata_props.clear()
    model.metadata_props.update(metadata)
    for part in (model.graph, *model.graph, *model.graph.initializers.values()):
        part.metadata_props.clear()  # where this machine keeps its files
    return bytes(exported.model_proto.SerializeToString())

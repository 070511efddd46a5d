"""A `.pt2` program: `torch.export.load` opens it where dcdc is not installed."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from dcdc.engine.trained_model import TrainedModel
from dcdc.export.check import Agreement, Answer, require_agreement
from dcdc.export.exported_network import ExportedNetwork, trace
from dcdc.export.metadata import metadata_of
from dcdc.export.quiet import quiet_libraries
from dcdc.runtime.atomic_files import atomic_file

METADATA = "dcdc.json"
"""The extra file inside the archive."""


def export_torch(model: TrainedModel, path: Path) -> Agreement:
    """Checked as read back from the disk, before it appears at `path`."""
    with atomic_file(path) as temporary, quiet_libraries():
        extra = {METADATA: json.dumps(metadata_of(model))}
        archive = BytesIO()  # so that a full disk is an OSError as everywhere
        torch.export.save(trace(ExportedNetwork(model)), archive, extra_files=extra)
        temporary.write_bytes(archive.getvalue())
        return require_agreement(model, open_torch(temporary))


def open_torch(path: Path) -> Answer:
    program = torch.export.load(path).module()

    def answer(images: np.ndarray) -> dict[str, np.ndarray]:
        with torch.inference_mode():
            outputs = program(torch.from_numpy(images))
        return {name: output.numpy() for name, output in outputs.items()}

    return answer

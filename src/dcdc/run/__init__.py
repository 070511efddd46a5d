"""A run: `run(config, images)` trains, answers and writes its folder; `load(folder)` reads it."""

from dcdc.run.loading import from_pretrained, load, read_config
from dcdc.run.results import Baseline, backbone_of, data_shape, target_names
from dcdc.run.training import RunResult, run
from dcdc.run.writing import add_sample, write_run

__all__ = [
    "Baseline",
    "RunResult",
    "add_sample",
    "backbone_of",
    "data_shape",
    "from_pretrained",
    "load",
    "read_config",
    "run",
    "target_names",
    "write_run",
]

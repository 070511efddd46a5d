"""A run: `run(config, images)` trains, answers and writes its folder; `load(folder)` reads it."""

from dcdc.run.loading import from_pretrained, load, read_config
from dcdc.run.results import Baseline, add_sample, backbone_of, data_shape, target_names, write_run
from dcdc.run.training import RunResult, run

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

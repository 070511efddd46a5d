"""What a run is: its settings, their names, types and rules. Needs the standard library alone."""

from dcdc.config.phase_settings import PHASES, PhaseSettings, Schedule
from dcdc.config.run_config import (
    NEUTRAL_KEYS,
    RunConfig,
    check_names_and_types,
    differences,
    flat,
    from_mapping,
    parse_settings,
    read_toml,
    to_mapping,
    with_settings,
    with_values,
)
from dcdc.config.sections import (
    AugmentConfig,
    DataConfig,
    Device,
    NetworkConfig,
    Precision,
    TrainConfig,
)

__all__ = [
    "NEUTRAL_KEYS",
    "PHASES",
    "AugmentConfig",
    "DataConfig",
    "Device",
    "NetworkConfig",
    "PhaseSettings",
    "Precision",
    "RunConfig",
    "Schedule",
    "TrainConfig",
    "check_names_and_types",
    "differences",
    "flat",
    "from_mapping",
    "parse_settings",
    "read_toml",
    "to_mapping",
    "with_settings",
    "with_values",
]

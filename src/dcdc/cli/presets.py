"""`dcdc presets`: the named recipes."""

from typing import Annotated

import typer

from dcdc.config import flat
from dcdc.presets import PRESETS, length, preset


def presets(
    name: Annotated[str | None, typer.Argument(help="Show every setting of this one.")] = None,
) -> None:
    """List the named recipes, or every setting of one."""
    if name is None:
        for known, config in PRESETS.items():
            train = config.train
            print(
                f"{known:22}{config.n_clusters:4} clusters  {config.network.trunk:18}"
                f" batch {train.batch_size:3} x {train.n_repeats}  {length(config)}"
            )
    else:
        for key, value in flat(preset(name)).items():
            print(f"{key} = {value}")

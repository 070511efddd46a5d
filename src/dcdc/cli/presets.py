"""`dcdc presets`: the named recipes."""

from typing import Annotated

import typer


def presets(
    name: Annotated[str | None, typer.Argument(help="Show every setting of this one.")] = None,
) -> None:
    """List the named recipes, or every setting of one."""
    from dcdc.cli.recipe_lines import length
    from dcdc.config import flat
    from dcdc.config.keys import range_of_key
    from dcdc.phases.heads import heads_of
    from dcdc.prepare.presets import PRESETS, preset

    if name is None:
        for known, config in PRESETS.items():
            heads = heads_of(config)
            print(
                f"{known:22}{config.n_clusters:4} clusters  {config.network.backbone:18}"
                f" batch {heads.batch_size:3} x {heads.n_repeats}  {length(config)}"
            )
    else:
        for key, value in flat(preset(name)).items():
            allowed = range_of_key(key) if "." in key else None
            print(f"{key} = {value}" + (f"  # {allowed}" if allowed else ""))

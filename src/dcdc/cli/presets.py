"""`dcdc presets`: the named recipes."""

from typing import Annotated

import typer
from rich.table import Table

from dcdc.cli.console import wide_out


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
        table = Table(box=None, pad_edge=False)
        for title in ("name", "clusters", "backbone", "batch"):
            table.add_column(
                title, no_wrap=True, justify="right" if title == "clusters" else "left"
            )
        table.add_column("length")
        for known, config in PRESETS.items():
            heads = heads_of(config)
            batch = f"{heads.batch_size} x {heads.n_repeats}"
            backbone = config.network.backbone
            table.add_row(known, str(config.n_clusters), backbone, batch, length(config))
        wide_out().print(table)
    else:
        for key, value in flat(preset(name)).items():
            allowed = range_of_key(key) if "." in key else None
            print(f"{key} = {value}" + (f"  # {allowed}" if allowed else ""))

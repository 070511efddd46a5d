"""`dcdc presets`: the named recipes."""

from typing import Annotated

import typer
from rich.table import Table

from dcdc.cli.console import wide_out


def presets(
    name: Annotated[str | None, typer.Argument(help="Show every setting of this one.")] = None,
) -> None:
    """List the named recipes, or every setting of one."""
    from dcdc.cli.recipe_lines import length, n_copies
    from dcdc.config import flat
    from dcdc.config.keys import range_of_key
    from dcdc.prepare.presets import PRESETS, preset
    from dcdc.prepare.resolve import main_batch_size

    if name is None:
        table = Table(box=None, pad_edge=False)
        for title in ("name", "clusters", "backbone", "batch"):
            table.add_column(
                title, no_wrap=True, justify="right" if title == "clusters" else "left"
            )
        table.add_column("length")
        for known, config in PRESETS.items():
            of_copies = f"{main_batch_size(config)} x {n_copies(config)}"
            backbone = config.network.backbone
            table.add_row(known, str(config.n_clusters), backbone, of_copies, length(config))
        wide_out().print(table)
    else:
        for key, value in flat(preset(name)).items():
            allowed = range_of_key(key) if "." in key else None
            print(f"{key} = {value}" + (f"  # {allowed}" if allowed else ""))

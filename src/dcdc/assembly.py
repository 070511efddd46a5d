"""A resolved config becomes a model, and a training that is ready to begin."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dcdc.config import RunConfig, to_mapping
from dcdc.config_for_images import resolve_precision
from dcdc.copies_from_config import build_original_copy, build_perturbed_copy
from dcdc.data import ImageSet
from dcdc.data.store import Store, open_store
from dcdc.engine.captured_step import CapturedStep, CudaCapture
from dcdc.engine.flat_adam import FlatAdam
from dcdc.engine.head_start import start_head_by_k_means
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.engine.objectives import Function, as_it_is, own_rows
from dcdc.engine.observer import Observer
from dcdc.engine.optimiser import Adam, Optimiser
from dcdc.engine.patch_start import start_patches
from dcdc.engine.plan import Plan
from dcdc.engine.step import EagerStep, Step
from dcdc.engine.trained_model import TrainedModel
from dcdc.engine.trainer import Trainer
from dcdc.metrics import health_warnings, partition_health, score
from dcdc.networks import CLUSTER_HEAD, Aside, ClusteringNetwork, PatchTrunk, share_statistics
from dcdc.objectives_from_config import build_objective
from dcdc.plan_from_config import build_plan
from dcdc.runtime.batch_share import BatchShare
from dcdc.runtime.device import autocast, choose_fastest_convolutions, has_triton, pick_device
from dcdc.runtime.processes import ALONE, Processes
from dcdc.runtime.seeding import derive_generator, derive_seed

COMPILE_FROM_STEPS = 100_000
"""Compiling takes some 20 seconds and saves some 0.4 ms a step on an H200."""
BESIDE_TO_PIXELS = 100 * 32 * 32
"""Of a batch. Weight gradients on a second stream save 0.3 of 3 ms with 50 images of 32 x 32, three
copies each, and cost 0.02 of 6.5 ms with 200: a layer then fills an H200 alone."""


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
            predicts=config.instance.predicts,
            n_sub_heads=network.sub_heads,
        )


def build_model(config: RunConfig, processes: Processes = ALONE) -> TrainedModel:
    device = pick_device(config.train.device)
    choose_fastest_convolutions(device)
    network = build_network(config).to(device)
    # Fastest with the channels last; but for a deep trunk on a CPU (docs/log.md).
    if device.type != "cpu" or not config.network.is_deep:
        network.lay_out(torch.channels_last)
    return TrainedModel(
        network,
        build_original_copy(config),
        device=device,
        autocast=partial(autocast, device, resolve_precision(config.train.precision, device)),
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
    weights: Mapping[str, Tensor] | None = None,
) -> Training:
    """Everything a resolved config asks for, ready to train; `weights` is what the network begins
    with, instead of drawn ones and what the images give a trunk."""
    model = build_model(config, processes)
    network, device = model.network, model.device
    if weights is not None:
        network.load_state_dict(dict(weights))
    if config.instance.epochs and config.instance.predicts:
        network.keep_slow_copy()
    if processes.joined:
        share_statistics(network, processes)
    store = open_store(image_set.images, device, image_set.extra, processes.launch.local_size)
    observer.note(f"images {store.description}")
    plan = build_plan(config, image_set)
    optimiser = _optimiser(config, network, device)
    generator = torch.Generator(device=device)
    compiled = _compiled(config, device, plan, observer)
    on_cuda = device.type == "cuda"
    capture = CudaCapture() if on_cuda and config.train.capture else None
    height, width, _ = image_set.image_shape
    steps: dict[str, Step] = {}
    for phase in plan.phases:
        share = BatchShare(processes, phase.batch_size) if processes.joined else None
        n_images = phase.batch_size if share is None else share.n_own
        eager = EagerStep(
            network=network,
            optimiser=optimiser,
            store=store,
            objective=build_objective(
                phase, config, model, compiled, own_rows if share is None else share.gather
            ),
            generator=generator,
            aside=_aside(device, n_images * height * width),
            share=share,
        )
        steps[phase.kind] = eager
        if capture is not None:
            n_rows = n_images * (2 if phase.n_neighbours else 1)
            steps[phase.kind] = CapturedStep(eager, n_rows, warn=observer.warn, capture=capture)
    trainer = Trainer(
        plan=plan,
        steps=steps,
        network=network,
        optimiser=optimiser,
        generator=generator,
        evaluate=_evaluation(model, store, image_set.targets),
        start_trunk=_trunk_start(config, model, store, observer)
        if weights is None
        else lambda: None,
        start_cluster_head=_head_start(config, model, store),
        choose_answer=_choice(network),
        find_neighbours=_neighbour_search(model, store),
        expect=store.expect,
        observer=observer,
        folder=folder,
        processes=processes,
    )
    return Training(model, store, trainer)


def _optimiser(config: RunConfig, network: ClusteringNetwork, device: torch.device) -> Optimiser:
    rate = config.train.learning_rate
    if device.type != "cuda":
        return Adam(network.parameters(), rate, fused=device.type == "cpu")
    on_device = torch.tensor(rate, device=device)  # a captured step reads it there
    if config.train.precision == "bfloat16" and has_triton():
        return FlatAdam(network, on_device)
    return Adam(network.parameters(), on_device, fused=True)


def _aside(device: torch.device, n_pixels: int) -> Aside | None:
    if device.type != "cuda":
        return None
    return Aside.on(device) if n_pixels <= BESIDE_TO_PIXELS else Aside()


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
    # The losses are in float32 on purpose; torch would advise less, in the middle of the progress.
    warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")
    return partial(torch.compile, dynamic=False)


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


def _trunk_start(
    config: RunConfig, model: TrainedModel, store: Store, observer: Observer
) -> Callable[[], None]:
    network, trunk, processes = model.network, model.network.trunk, model.processes

    def start() -> None:
        if not isinstance(trunk, PatchTrunk):
            return
        observer.note("a dictionary of patches is found first, in about a minute or less")
        perturbed = build_perturbed_copy(config, n_repeats=1)
        generator = derive_generator(config.train.seed, "patches", device=model.device)
        by_first = partial(
            start_patches,
            *(trunk, store, lambda images: network.seen(model.original_copy.centre(images))),
            *(lambda images, draws: network.seen(perturbed(images, draws)), generator),
        )
        processes.all_wait_for(by_first if processes.is_first else lambda: None)
        processes.spread([trunk.filters, trunk.offsets, *trunk.dense.parameters()])
        if network.slow_copy is not None:
            network.keep_slow_copy()

    return start


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

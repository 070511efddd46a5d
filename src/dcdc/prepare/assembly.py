"""A resolved config becomes a model, and a training that is ready to begin."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from dcdc.config import RunConfig, to_mapping
from dcdc.data import Data, VectorSet
from dcdc.data.store import Store, open_store
from dcdc.data.vector_store import VectorStore, open_vector_store
from dcdc.engine.captured_step import CapturedStep, CudaCapture
from dcdc.engine.context import TrainingContext
from dcdc.engine.evaluation import Evaluation
from dcdc.engine.held_out_loss import held_out_loss
from dcdc.engine.neighbours import find_neighbours
from dcdc.engine.objectives import Function, Passes, StepTools, as_it_is, one_pass, two_passes
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.optimiser import Optimiser
from dcdc.engine.phase import Phase, Trained
from dcdc.engine.plan import Plan
from dcdc.engine.step import EagerStep, Step
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.engine.trainer import Trainer
from dcdc.engine.views import Apply, Copy
from dcdc.errors import InputError
from dcdc.networks import (
    ClusteringNetwork,
    WeightGradientStream,
    build_backbone,
    find_backbone,
    share_statistics,
)
from dcdc.networks.feature_vectors import VECTORS
from dcdc.networks.layers import Sobel
from dcdc.phases.heads import heads_of
from dcdc.prepare.resolve import (
    batch_sizes,
    has_stored_features,
    main_batch_size,
    original_copy,
    perturbed_copy,
    resolve_precision,
)
from dcdc.prepare.stored_features import stored_features
from dcdc.runtime.batch_share import BatchShare
from dcdc.runtime.device import autocast, choose_fastest_convolutions, pick_device
from dcdc.runtime.processes import ALONE, Processes
from dcdc.runtime.seeding import derive_seed

COMPILE_FROM_STEPS = 100_000
"""Compiling takes some 20 seconds and saves some 0.4 ms a step on an H200."""
SECOND_STREAM_TO_PIXELS = 100 * 32 * 32
"""Of a batch. Weight gradients on a second stream save 0.3 of 3 ms with 50 images of 32 x 32, three
copies each, and cost 0.02 of 6.5 ms with 200: a layer then fills an H200 alone."""


def build_network(config: RunConfig, *, for_training: bool = False) -> ClusteringNetwork:
    """From a resolved config; the weights follow from the seed alone. `for_training` adds what the
    phases need beside backbone and heads."""
    settings = config.network
    assert config.n_clusters is not None
    mean, std = settings.mean, settings.std
    if settings.backbone == VECTORS:
        assert config.data.n_features is not None
        in_channels, mean, std = config.data.n_features, (0.0,), (1.0,)
    else:
        assert mean is not None
        assert std is not None
        in_channels = len(mean)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.train.seed, "weights"))
        backbone = build_backbone(
            settings.backbone, Sobel.out_channels if settings.sobel else in_channels
        )
        network = ClusteringNetwork(
            backbone,
            in_channels=in_channels,
            n_clusters=config.n_clusters,
            n_over_clusters=settings.over_clusters,
            sobel=settings.sobel,
            mean=mean,
            std=std,
            n_sub_heads=settings.sub_heads,
            input_size=settings.input_size,
            takes_vectors=has_stored_features(settings),
        )
        for phase in config.active_phases.values() if for_training else ():
            assert isinstance(phase, Phase)
            part = phase.part(network)
            if part is not None and phase.kind not in network.parts:
                network.parts[phase.kind] = part
            elif part is not None and _shapes(part) != _shapes(network.parts[phase.kind]):
                raise InputError(
                    f"two phases of kind {phase.kind} share their part of the network, and ask for "
                    "other ones",
                    remedy=f"give both the same settings, such as {{{phase.kind}.projection}}",
                )
        return network


def _shapes(part: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in part.state_dict().items()}


def build_model(
    config: RunConfig, processes: Processes = ALONE, *, for_training: bool = False
) -> TrainedModel:
    device = pick_device(config.train.device)
    choose_fastest_convolutions(device)
    network = build_network(config, for_training=for_training).to(device)
    # Fastest with the channels last; but for a deep backbone on a CPU (docs/log.md).
    if device.type != "cpu" or find_backbone(config.network.backbone).suits_cpu:
        network.lay_out(torch.channels_last)
    return TrainedModel(
        network,
        original_copy(config),
        device=device,
        autocast=partial(
            autocast, device, resolve_precision(config.train.precision, device, config.network)
        ),
        config=to_mapping(config),
        processes=processes,
    )


def build_plan(config: RunConfig, image_set: Data, network: ClusteringNetwork) -> Plan:
    named = config.active_phases
    phases = [phase for phase in named.values() if isinstance(phase, Phase)]
    sizes = batch_sizes(config)
    return Plan(
        phases=tuple(phases),
        names=tuple(named),
        batch_sizes=tuple(sizes[name] for name in named),
        heads=network.roles,
        n_images=image_set.n_images,
        n_extra=_n_extra(config, image_set),
        seed=config.train.seed,
        evaluate_every=config.train.evaluate_every,
        checkpoint_every=config.train.checkpoint_every,
        keep_checkpoints=config.train.keep_checkpoints,
    )


def _n_extra(config: RunConfig, image_set: Data) -> int:
    is_of_images = not (has_stored_features(config.network) or config.trains_heads_alone)
    if isinstance(image_set, VectorSet) or not is_of_images:
        return 0  # features are of the answered images alone
    return 0 if image_set.extra is None else len(image_set.extra)


@dataclass(frozen=True)
class Training:
    model: TrainedModel
    store: Store
    trainer: Trainer
    evaluation: Evaluation


def build_training(
    config: RunConfig,
    image_set: Data,
    observer: Observer,
    folder: Path | None,
    processes: Processes = ALONE,
    weights: Mapping[str, Tensor] | None = None,
    taught: Taught | None = None,
) -> Training:
    """Everything a resolved config asks for, ready to train; `weights` is what the network begins
    with, instead of drawn ones and what the images give a backbone; `taught` is what people said
    of the images."""
    model = build_model(config, processes, for_training=True)
    network, device = model.network, model.device
    if weights is None:
        load_pretrained(config, network)
    else:
        network.load_finished(weights)
        if config.network.frozen or config.trains_heads_alone:
            network.freeze_backbone()
    if processes.joined:
        share_statistics(network, processes)
    store = open_data(config, model, image_set, observer, as_features=config.trains_heads_alone)
    held = "feature vectors" if isinstance(store, VectorStore) else "images"
    observer.note(f"{held} {store.description}")
    plan = build_plan(config, image_set, network)
    context = replace(build_context(config, model, store, observer), taught=taught)
    optimisers = _optimisers(config, network, device, plan)
    generator = torch.Generator(device=device)
    compiled = _compiled(config, device, plan, observer)
    capture = CudaCapture() if device.type == "cuda" and config.train.capture else None
    n_pixels = _pixels(image_set)
    steps: list[Step] = []
    for phase, batch_size, optimiser in zip(plan.phases, plan.batch_sizes, optimisers, strict=True):
        share = BatchShare(processes, batch_size) if processes.joined else None
        n_images = batch_size if share is None else share.n_own
        tools = _tools(model, compiled, share)
        eager = EagerStep(
            network=network,
            optimiser=optimiser,
            store=store,
            objective=phase.objective(context, tools),
            generator=generator,
            gradient_stream=_gradient_stream(device, n_images * n_pixels),
            share=share,
            state=context.state,
        )
        step: Step = eager
        if capture is not None:
            n_rows = n_images * phase.index_rows(of_vectors=isinstance(store, VectorStore))
            step = CapturedStep(eager, n_rows, warn=observer.warn, capture=capture)
        steps.append(step)
    evaluation = Evaluation(model, store, image_set.targets)
    trainer = Trainer(
        plan=plan,
        steps=steps,
        context=context,
        optimisers=optimisers,
        generator=generator,
        evaluate=evaluation,
        folder=folder,
        keep_backbone=weights is not None,
    )
    return Training(model, store, trainer, evaluation)


def load_pretrained(config: RunConfig, network: ClusteringNetwork) -> None:
    """The weights of a pretrained backbone, frozen where the config says so."""
    load_weights = find_backbone(config.network.backbone).load_weights
    if load_weights is not None:
        load_weights(network.backbone)
    if config.network.frozen:
        network.freeze_backbone()


def open_data(
    config: RunConfig,
    model: TrainedModel,
    image_set: Data,
    observer: Observer,
    *,
    as_features: bool = False,
) -> Store:
    """What training reads: images, given feature vectors, or those of a backbone that is frozen, or
    stays as it is while the heads train (`as_features`)."""
    device, n_sharing = model.device, model.processes.launch.local_size
    if isinstance(image_set, VectorSet):
        return open_vector_store(image_set.vectors, device, image_set.copies, n_sharing)
    if not (config.network.frozen or as_features):
        return open_store(image_set.images, device, image_set.extra, n_sharing)
    with observer.counting("computing features") as progress:
        vectors = stored_features(model, image_set, progress)
    return open_vector_store(vectors, device, n_sharing=n_sharing)


def _pixels(image_set: Data) -> int:
    if isinstance(image_set, VectorSet):
        return image_set.n_features
    height, width, _ = image_set.image_shape
    return height * width


def build_context(
    config: RunConfig, model: TrainedModel, store: Store, observer: Observer
) -> TrainingContext:
    return TrainingContext(
        model=model,
        store=store,
        seed=config.train.seed,
        perturbed_copy=partial(perturbed_copy, config),
        observer=observer,
        sizes=config.sizes,
        outliers=config.outliers,
    )


def held_out_loss_of(config: RunConfig, model: TrainedModel, image_set: Data, seed: int) -> float:
    """The cluster head's own loss under draws that follow from `seed` alone."""
    heads = heads_of(config)
    store = open_data(config, model, image_set, SilentObserver())
    context = build_context(config, model, store, SilentObserver())
    partners = None
    if isinstance(store, VectorStore):
        partners = find_neighbours(model, store, 1)[:, 0]
    return held_out_loss(
        model.network,
        store,
        heads.without_neighbours().objective(context, StepTools(model.autocast)),
        batch_size=min(main_batch_size(config), image_set.n_images),
        seed=seed,
        partners=partners,
    )


def _optimisers(
    config: RunConfig, network: ClusteringNetwork, device: torch.device, plan: Plan
) -> list[Optimiser]:
    """Each phase has its own: moments of another loss would mislead."""
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    factor = config.network.backbone_rate
    slower = list(network.backbone.parameters()) if factor < 1 else []
    on_gpu, fused = device.type == "cuda", device.type != "mps"

    def made_for(phase: Phase) -> Optimiser:
        rate: float | Tensor = phase.learning_rate
        if on_gpu:
            rate = torch.tensor(rate, device=device)  # a captured step reads it there
        return phase.optimiser(Trained(trained, rate, slower, factor, fused))

    return [made_for(phase) for phase in plan.phases]


def _gradient_stream(device: torch.device, n_pixels: int) -> WeightGradientStream | None:
    if device.type != "cuda":
        return None
    few = n_pixels <= SECOND_STREAM_TO_PIXELS
    return WeightGradientStream.on(device) if few else WeightGradientStream()


def _tools(
    model: TrainedModel, compiled: Callable[[Function], Function], share: BatchShare | None
) -> StepTools:
    def applied(copy: Copy) -> Apply:
        return copy.apply if copy.has_kernel(model.device) else compiled(copy.apply)

    tools = StepTools(
        autocast=model.autocast, passes=_passes(model), applied=applied, compiled=compiled
    )
    return tools if share is None else replace(tools, gather=share.gather)


def _passes(model: TrainedModel) -> Passes:
    """One is faster on CUDA, and has half as many exchanges between processes."""
    together = model.device.type == "cuda" or model.processes.joined
    return one_pass if together else two_passes


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

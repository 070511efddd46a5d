"""What a network takes from its images or feature vectors before any training: the middle of the
vectors; a patch backbone's dictionary and its first features.

The dictionary is K-Means on whitened patches. The features are those directions of its answers in
which images differ from each other more than from their own perturbed copies: what the two views
ask of features too, solved at once, as their dense layer is linear (docs/log.md).
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from dcdc.data.store import Store
from dcdc.data.vector_store import VectorStore
from dcdc.engine.context import TrainingContext
from dcdc.engine.discriminant import FLOOR, discriminant_directions
from dcdc.networks import ClusteringNetwork
from dcdc.networks.patches import N_FEATURES, N_PATCHES, PatchBackbone, even_patches
from dcdc.runtime.library_threads import library_threads
from dcdc.runtime.seeding import derive_generator

MOST_IMAGES = 10_000
N_COPIES = 8
_N_SAMPLED = 40_000
_CHUNK = 250
_SOFTENED = 0.1
"""Added to the variance of whitened patches: what hardly varies is noise."""
_FEW, _FLOOR_OF_FEW = 1_000, 0.1
"""Copies of fewer images do not say well which of 1,600 answers stay the same (docs/log.md)."""
_ROWS_AT_ONCE = 8192


def initialise_patch_backbone(context: TrainingContext) -> None:
    """Of several processes the first finds it."""
    network, processes = context.network, context.processes
    backbone = network.backbone
    assert isinstance(backbone, PatchBackbone)
    original, perturbed = context.model.original_copy, context.perturbed_copy(1)
    with context.observer.counting("learning patches") as progress:
        by_first = partial(
            initialise_patches,
            *(backbone, context.store, lambda images: network.preprocess(original.centre(images))),
            lambda images, draws: network.preprocess(perturbed(images, draws)),
            derive_generator(context.seed, "patches", device=context.model.device),
            progress,
        )
        processes.with_barrier(by_first if processes.is_first else lambda: None)
    processes.broadcast([backbone.filters, backbone.offsets, *backbone.dense.parameters()])


@torch.no_grad()
def initialise_patches(
    backbone: PatchBackbone,
    store: Store,
    see: Callable[[Tensor], Tensor],
    see_perturbed: Callable[[Tensor, torch.Generator], Tensor],
    generator: torch.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """`see` brings uint8 images to what the backbone is given, `see_perturbed` a copy of them;
    `progress` hears of the images whose copies were seen, by far the most of the work."""
    rows = torch.arange(0, store.n_answered, max(1, store.n_answered // MOST_IMAGES))
    chunks = torch.split(rows, _CHUNK)
    n_each = -(-_N_SAMPLED // len(rows))
    patches = torch.cat(
        [_some_patches(see(store.batch(chunk)), n_each, generator) for chunk in chunks]
    )
    middle = patches.mean(dim=0)
    whitening = _whitening(patches - middle)
    backbone.take_dictionary(_typical((patches - middle) @ whitening, generator), whitening, middle)

    def answers() -> Iterator[Tensor]:
        n_seen = 0
        for chunk in chunks:
            images = store.batch(chunk)
            copies = [see_perturbed(images, generator) for _ in range(N_COPIES)]
            yield torch.stack([backbone.answers(copy) for copy in copies])
            n_seen += len(chunk)
            progress(n_seen, len(rows))

    floor = _FLOOR_OF_FEW if len(rows) < _FEW else FLOOR
    discriminant = discriminant_directions(answers(), N_FEATURES, floor)
    # Fewer than the backbone has where there are fewer images; the rest stay as they were drawn.
    n = discriminant.directions.shape[1]
    backbone.dense.weight[:n] = discriminant.directions.T.to(backbone.dense.weight)
    backbone.dense.bias[:n] = -(discriminant.middle @ discriminant.directions).to(
        backbone.dense.bias
    )
    backbone.dense.weight[n:] = backbone.dense.bias[n:] = 0


def _some_patches(x: Tensor, n_each: int, generator: torch.Generator) -> Tensor:
    """`n_each` of every image, or as many as it has, on the CPU."""
    patches = even_patches(x.float())
    n_drawn = min(n_each, patches.shape[1])
    which = torch.randint(
        patches.shape[1], (len(x), n_drawn), generator=generator, device=generator.device
    )
    return patches.gather(1, which[..., None].expand(-1, -1, patches.shape[2])).flatten(0, 1).cpu()


def _whitening(away: Tensor) -> Tensor:
    """P x P, symmetric: patches of even variance in every direction."""
    variances, axes = torch.linalg.eigh((away.T @ away).double() / len(away))
    whitening: Tensor = axes / (variances.clamp(min=0) + _SOFTENED).sqrt() @ axes.T
    return whitening.float()


def _typical(patches: Tensor, generator: torch.Generator) -> Tensor:
    """N_PATCHES centres; of fewer patches some are there twice."""
    from sklearn.cluster import MiniBatchKMeans  # two seconds that most runs do not need

    seed = int(torch.randint(2**31 - 1, (), generator=generator, device=generator.device))
    given = patches.numpy().astype(np.float32)
    k_means = MiniBatchKMeans(N_PATCHES, batch_size=4096, n_init=1, max_iter=30, random_state=seed)
    with library_threads():
        centres = k_means.fit(given).cluster_centers_
    return torch.from_numpy(centres.astype(np.float32))


def initialise_backbone(context: TrainingContext) -> None:
    """A dictionary of patches, the middle of feature vectors; most networks take nothing."""
    if isinstance(context.network.backbone, PatchBackbone):
        initialise_patch_backbone(context)
    if isinstance(context.store, VectorStore):
        find_middle(context.network, context.store)


@torch.no_grad()
def find_middle(network: ClusteringNetwork, store: VectorStore) -> None:
    """The mean of all rows, from which their directions are seen."""
    assert network.directions is not None
    total = torch.zeros(network.n_features, dtype=torch.float64)
    for rows in store.in_chunks(_ROWS_AT_ONCE):
        total += rows.sum(dim=0).cpu().double()
    network.directions.middle.copy_(total / store.n_answered)

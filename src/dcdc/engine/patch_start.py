"""A patch trunk's dictionary and its first features, from the images, before training.

The dictionary is K-Means on whitened patches. The features are those directions of its answers in
which images differ from each other more than from their own perturbed copies: what the two views
ask of features too, solved at once, as their dense layer is linear (docs/log.md).
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from dcdc.data.store import Store
from dcdc.engine.steady import steady_directions
from dcdc.networks.patches import N_FEATURES, N_PATCHES, PatchTrunk, even_patches
from dcdc.runtime.device import library_threads

MOST_IMAGES = 10_000
N_COPIES = 8
_N_SAMPLED = 40_000
_CHUNK = 250
_SOFTENED = 0.1
"""Added to the variance of whitened patches: what hardly varies is noise."""


@torch.no_grad()
def start_patches(
    trunk: PatchTrunk,
    store: Store,
    see: Callable[[Tensor], Tensor],
    see_perturbed: Callable[[Tensor, torch.Generator], Tensor],
    generator: torch.Generator,
) -> None:
    """`see` brings uint8 images to what the trunk is given, `see_perturbed` a copy of them."""
    rows = torch.arange(0, store.n_answered, max(1, store.n_answered // MOST_IMAGES))
    chunks = torch.split(rows, _CHUNK)
    n_each = -(-_N_SAMPLED // len(rows))
    patches = torch.cat(
        [_some_patches(see(store.batch(chunk)), n_each, generator) for chunk in chunks]
    )
    middle = patches.mean(dim=0)
    whitening = _whitening(patches - middle)
    trunk.take_dictionary(_typical((patches - middle) @ whitening, generator), whitening, middle)

    def answers() -> Iterator[Tensor]:
        for chunk in chunks:
            images = store.batch(chunk)
            copies = [see_perturbed(images, generator) for _ in range(N_COPIES)]
            yield torch.stack([trunk.answers(copy) for copy in copies])

    steady = steady_directions(answers(), N_FEATURES)
    # Fewer than the trunk has where there are fewer images; the rest stay as they were drawn.
    n = steady.directions.shape[1]
    trunk.dense.weight[:n] = steady.directions.T.to(trunk.dense.weight)
    trunk.dense.bias[:n] = -(steady.middle @ steady.directions).to(trunk.dense.bias)
    trunk.dense.weight[n:] = trunk.dense.bias[n:] = 0


def _some_patches(x: Tensor, n_each: int, generator: torch.Generator) -> Tensor:
    """`n_each` of every image, on the CPU."""
    patches = even_patches(x.float())
    which = torch.randint(
        patches.shape[1], (len(x), n_each), generator=generator, device=generator.device
    )
    return patches.gather(1, which[..., None].expand(-1, -1, patches.shape[2])).flatten(0, 1).cpu()


def _whitening(away: Tensor) -> Tensor:
    """P x P, symmetric: patches of even variance in every direction."""
    variances, axes = torch.linalg.eigh((away.T @ away).double() / len(away))
    whitening: Tensor = axes / (variances.clamp(min=0) + _SOFTENED).sqrt() @ axes.T
    return whitening.float()


def _typical(patches: Tensor, generator: torch.Generator) -> Tensor:
    """N_PATCHES centres; of fewer patches some stand there twice."""
    from sklearn.cluster import MiniBatchKMeans  # two seconds that most runs do not need

    seed = int(torch.randint(2**31 - 1, (), generator=generator, device=generator.device))
    given = patches.numpy().astype(np.float32)
    k_means = MiniBatchKMeans(N_PATCHES, batch_size=4096, n_init=1, max_iter=30, random_state=seed)
    with library_threads():
        centres = k_means.fit(given).cluster_centers_
    return torch.from_numpy(centres.astype(np.float32))

"""Features of a frozen backbone: computed once for a set of images, kept in the cache, resumable.

Shapes: N images, D features.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from dcdc.data import ImageSet
from dcdc.data.fingerprint import content_digest
from dcdc.data.mapped import release_pages
from dcdc.data.row_cache import Block, RowSource, cached_rows
from dcdc.data.row_cache import are_kept as rows_are_kept
from dcdc.data.vector_store import as_bytes
from dcdc.engine.interruption import Interruption
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import Interrupted
from dcdc.networks import find_backbone
from dcdc.runtime.tensor_files import tensors_to_bytes
from dcdc.stored.reading import file_digest

_FORMAT = 1
_BLOCK = 256
"""Images of a block: what a kill costs at most."""
_CHUNK = {"cpu": 64, "cuda": 1024, "mps": 256}
"""Images of a forward pass."""
Progress = Callable[[int, int], None]


def stored_features(
    model: TrainedModel, image_set: ImageSet, progress: Progress = lambda *_: None
) -> NDArray[np.float32]:
    """N x D, memory-mapped: what the backbone makes of the original copies.

    Equal images, weights, sizes and kinds of device have equal features: they are found again. A
    signal raises Interrupted, and a later call goes on after the last whole block.
    """
    with Interruption(ignore_repeats=model.processes.joined) as interruption:
        return _stored(model, image_set, progress, partial(_stop_if_wanted, interruption))


def _stop_if_wanted(interruption: Interruption) -> None:
    if interruption.wanted:
        raise Interrupted(interruption.wanted, 0, "the backbone's features were computed")


def are_kept(model: TrainedModel, image_set: ImageSet) -> bool:
    """Whether `stored_features` would compute nothing."""
    return rows_are_kept(_source(model, image_set))


def _stored(
    model: TrainedModel, image_set: ImageSet, progress: Progress, between: Callable[[], None]
) -> NDArray[np.float32]:
    found = cached_rows(_source(model, image_set, between), progress=progress).images
    rows: NDArray[np.float32] = found.reshape(image_set.n_images, -1).view(np.float32)
    return rows


def _source(
    model: TrainedModel, image_set: ImageSet, between: Callable[[], None] = lambda: None
) -> RowSource:
    images = image_set.images

    def blocks(start: int) -> Iterator[Block]:
        for first in range(start, len(images), _BLOCK):
            rows = np.array(images[first : first + _BLOCK], order="C")
            release_pages(images)
            yield Block(as_bytes(raw_features(model, rows, between)), n_read=len(rows))

    return RowSource(
        key=_key(model, image_set),
        n_rows=len(images),
        shape=(1, 1, model.network.n_features * 4),
        blocks=blocks,
        what="features",
    )


@torch.inference_mode()
def raw_features(
    model: TrainedModel,
    images: NDArray[np.uint8],
    between: Callable[[], None] = lambda: None,
) -> NDArray[np.float32]:
    """N x D of N x H x W x C, as the backbone makes them; `between` is called before each pass."""
    network = model.network
    was_training = network.training
    network.eval()
    try:
        found = []
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2)
        for chunk in torch.split(pixels, min(model.chunk, _CHUNK[model.device.type])):
            between()
            given = model.prepare(chunk.to(model.device))
            with model.autocast():
                found.append(network.raw_features(given).float().cpu())
    finally:
        network.train(was_training)
    features: NDArray[np.float32] = torch.cat(found).numpy()
    return features


def _architecture(model: TrainedModel) -> str:
    """What features depend on beside weights: files that a backbone is built from, or its name. An
    ONNX model has its weights in its file alone."""
    assert model.config is not None
    spec = model.found_backbone or str(model.config["network"]["backbone"])
    files = find_backbone(spec).files
    if not files:
        return spec.partition("@")[0]
    return " ".join(map(file_digest, files))


def _key(model: TrainedModel, image_set: ImageSet) -> str:
    network = model.network
    state = network.backbone.state_dict() | network.normalise.state_dict()
    precision = torch.float32
    with model.autocast():
        if torch.is_autocast_enabled(model.device.type):
            precision = torch.get_autocast_dtype(model.device.type)
    digest = hashlib.sha256(tensors_to_bytes({name: t.cpu() for name, t in state.items()}))
    told = (
        _FORMAT,
        _architecture(model),
        model.size,
        network.input_size,
        model.device.type,
        precision,
    )
    digest.update(repr(told).encode())
    # of a module from Python, whose code may change beside equal weights
    digest.update(getattr(network.backbone, "fingerprint", "").encode())
    digest.update(content_digest(image_set.images).encode())
    return f"features-{digest.hexdigest()[:32]}"

"""Feature vectors of images by a named pretrained backbone, as `dcdc fit` would make them.

Shapes: N images, D features.
"""

from dataclasses import asdict, replace

import numpy as np

from dcdc.data import ImageSet, VectorSet
from dcdc.errors import InputError
from dcdc.metrics.provenance import trained_on
from dcdc.networks import find_backbone
from dcdc.networks.backbones import Pretrained
from dcdc.prepare.assembly import build_model, load_pretrained
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.stored_features import Progress, stored_features


def require_pretrained(backbone: str) -> Pretrained:
    """What the backbone says of itself; no weight is read."""
    known = find_backbone(backbone).pretrained
    if known is None:
        raise InputError(
            "names no pretrained network, so it has no features to compare on",
            parameter="backbone",
            value=backbone,
        )
    return known


def described_features(known: Pretrained) -> str:
    """For a table's title: figures on pretrained features are marked as such."""
    return f"features of {known.name}, trained on {trained_on({'pretrained': asdict(known)})}"


def frozen_features(
    image_set: ImageSet,
    backbone: str,
    n_clusters: int,
    device: str,
    progress: Progress = lambda *_: None,
) -> VectorSet:
    """N x D, memory-mapped: computed once and kept, so that a later call finds them."""
    require_pretrained(backbone)
    asked = {"network.backbone": backbone, "train.device": device, "n_clusters": n_clusters}
    # A benchmark's own recipe would train another backbone.
    config = prepare_run(replace(image_set, known_as=""), Overrides(asked)).config
    model = build_model(config)
    load_pretrained(config, model.network)
    return with_vectors(image_set, stored_features(model, image_set, progress))


def with_vectors(image_set: ImageSet, vectors: np.ndarray) -> VectorSet:
    """The images' feature vectors, with their names and targets."""
    return VectorSet(
        vectors, image_set.names, image_set.targets, image_set.class_names, image_set.skipped
    )

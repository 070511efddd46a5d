"""A run learns from what people corrected in another one: `dcdc refine`.

    refine(RunFolder.open(corrected), Overrides(), folder=RunFolder.create(new))

The corrected run is read, never written. The new one keeps what it was taught, so that it can be
corrected in turn: nothing that people said is forgotten.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dcdc.config import DataConfig, RunConfig, to_mapping
from dcdc.data import Data
from dcdc.engine.checkpoints import CHECKPOINTS, load_latest
from dcdc.engine.edits import Edits, RunAnswers, read_edits
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.taught import Taught, taught_by
from dcdc.errors import InputError
from dcdc.networks import CLUSTER_HEAD
from dcdc.networks.feature_vectors import VECTORS
from dcdc.networks.pretrained import spec_of_kept
from dcdc.phases.refine import Refine
from dcdc.prepare.going_on import require_images_of
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run, read_again
from dcdc.prepare.resolve import has_stored_features
from dcdc.prepare.suggestions import FINE_TUNING_RATE
from dcdc.run import RunResult, read_config, run
from dcdc.run_folder import RunFolder

Read = Callable[[DataConfig], Data]
_STEPS = 100
_MOST_EPOCHS = 20
_WHOLE_NETWORK_EPOCHS = 10
_WHOLE_NETWORK_RATE = 3e-4


def refine(
    corrected: RunFolder,
    overrides: Overrides,
    *,
    edits: Path | Edits | None = None,
    whole_network: bool = False,
    folder: RunFolder | None = None,
    read: Read | None = None,
    observer: Observer | None = None,
) -> tuple[RunResult, Data]:
    """By the run's own edits, those of another file, or given ones. Images are read where the run
    found them, by `read`. The cluster head learns alone, on features that are computed once, or
    `whole_network` with it."""
    taught = lesson_of(corrected, edits)
    stored = read_config(corrected)
    if not stored.data.source:
        raise InputError(
            f"{corrected.path} was given its images in Python, and does not keep them",
            remedy="use DCDC.refine there",
        )
    weights = corrected.read_model(to_mapping(stored))
    data = (read or read_again)(stored.data)
    require_images_of(corrected.path, corrected.read_assignments()["name"].to_pylist(), data)
    backbone = spec_of_kept(stored.network.backbone, corrected.backbone)
    stored = replace(stored, network=replace(stored.network, backbone=backbone))
    result = learn(
        stored,
        weights,
        data,
        taught,
        overrides,
        whole_network=whole_network,
        folder=folder,
        observer=observer,
    )
    return result, data


def learn(
    stored: RunConfig,
    weights: Mapping[str, Tensor],
    data: Data,
    taught: Taught,
    overrides: Overrides,
    *,
    whole_network: bool = False,
    folder: RunFolder | None = None,
    observer: Observer | None = None,
    keep_finished: bool = False,
) -> RunResult:
    """From the settings and `weights` of the run that was corrected, and its images."""
    wanted = refined(stored, taught.n_clusters, data.n_images, whole_network=whole_network)
    config = prepare_run(data, replace(overrides, preset=wanted)).config
    return run(
        config,
        data,
        folder=folder,
        observer=observer or SilentObserver(),
        weights=start_of(weights, config),
        keep_finished=keep_finished,
        taught=taught,
    )


def lesson_of(corrected: RunFolder, edits: Path | Edits | None = None) -> Taught:
    """What people taught by correcting a finished run."""
    table = corrected.read_assignments()
    n_clusters = int(corrected.read_metrics()["n_clusters"])
    names = table["name"].to_pylist()
    answers = RunAnswers(names, table["cluster"].to_numpy().astype(np.int64), n_clusters)
    if not isinstance(edits, Edits):
        edits = corrected.read_edits(answers) if edits is None else read_edits(edits, answers)
    return taught_by(
        edits,
        answers,
        names=corrected.read_names(),
        earlier=corrected.read_taught(),
        source=str(corrected.path.resolve()),
        doubt=float(1 - table["confidence"].to_numpy().mean(dtype=np.float64)),
    )


def start_of(weights: Mapping[str, Tensor], config: RunConfig) -> dict[str, Tensor]:
    """Of a finished network, with one cluster head that has yet to begin, as `config` has it. A
    frozen backbone that is to train from now on has no directions any more."""
    name = next(name for name in weights if name.startswith(f"heads.{CLUSTER_HEAD}"))
    n_features = weights[f"{name.rpartition('.')[0]}.weight"].shape[1]
    gone = {"heads", "answering"}
    if not has_stored_features(config.network):
        gone.add("directions")
    kept = {name: each for name, each in weights.items() if name.partition(".")[0] not in gone}
    assert config.n_clusters is not None
    head = f"heads.{CLUSTER_HEAD}"
    return kept | {
        f"{head}.weight": torch.zeros(config.n_clusters, n_features),
        f"{head}.bias": torch.zeros(config.n_clusters),
    }


class Begun(NamedTuple):
    """What `run` needs to know of a run that goes on."""

    taught: Taught | None = None
    weights: dict[str, Tensor] | None = None


def begun(folder: RunFolder) -> Begun:
    """What a run that is to go on was taught, and the weights with which it goes on; none for a run
    that learns from nobody."""
    taught = folder.read_taught()
    if taught is None:
        return Begun()
    checkpoint = load_latest(folder.path / CHECKPOINTS, lambda _: None)  # the trainer warns
    if checkpoint is not None:
        of_network = "network/"
        weights = {
            name.removeprefix(of_network): tensor
            for name, tensor in checkpoint.tensors.items()
            if name.startswith(of_network)
        }
        return Begun(taught, weights)
    with suppress(InputError, OSError):
        corrected = RunFolder.open(Path(taught.source))
        if lesson_of(corrected).answers == taught.answers:
            weights = corrected.read_model(to_mapping(read_config(corrected)))
            return Begun(taught, start_of(weights, read_config(folder)))
    raise InputError(
        f"{folder.path} stopped before its first checkpoint, and the run that it learns from, "
        f"{taught.source}, is no longer there as it was",
        remedy="restore that, or start again by dcdc refine",
    )


def refined(stored: RunConfig, n_clusters: int, n_images: int, *, whole_network: bool) -> RunConfig:
    """`stored`: of the corrected run, whose network goes on. Its other heads number their clusters
    otherwise, so that no correction speaks of them."""
    batch_size = max(2, min(256, n_images // 2))
    network = replace(stored.network, over_clusters=0, sub_heads=1)
    if whole_network:
        if network.backbone == VECTORS:
            raise InputError("the run is of feature vectors, and has no whole network to train")
        if network.frozen:
            network = replace(network, frozen=False, backbone_rate=FINE_TUNING_RATE)
        batch_size = min(batch_size, _batch_size(stored) or batch_size)
        phase = Refine(
            epochs=_WHOLE_NETWORK_EPOCHS,
            batch_size=batch_size,
            learning_rate=_WHOLE_NETWORK_RATE,
            whole_network=True,
        )
    else:
        steps = max(1, n_images // batch_size)
        phase = Refine(epochs=min(_MOST_EPOCHS, -(-_STEPS // steps)), batch_size=batch_size)
    return replace(
        stored,
        n_clusters=n_clusters,
        network=network,
        phases=(phase,),
        train=replace(stored.train, device="auto", precision="auto", evaluate_every=1),
    )


def _batch_size(stored: RunConfig) -> int | None:
    """Of its last phase, which fitted into memory."""
    sizes = [phase.batch_size for phase in stored.phases if phase.epochs and phase.batch_size]
    return sizes[-1] if sizes else None

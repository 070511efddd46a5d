"""Another number of clusters for a finished run: new heads on the features that it has learnt.

    regroup(RunFolder.open(earlier), Overrides({"n_clusters": 8}), folder=RunFolder.create(new))

The backbone stays as it is. Its features are computed once and kept, as those of a pretrained one
are, and heads train on them: seconds, where training took minutes or hours. The earlier run is
read, never written.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dcdc.config import DataConfig, RunConfig, to_mapping, with_values
from dcdc.config.keys import OF_MAIN_PHASE
from dcdc.data import Data, VectorSet
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.number_search import find_number
from dcdc.prepare.assembly import build_model
from dcdc.prepare.cluster_number import FoundNumber, NumberRange
from dcdc.prepare.frozen_features import with_vectors
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run, read_again
from dcdc.prepare.stored_features import stored_features
from dcdc.run import RunResult, data_shape, load, read_config, run, write_run
from dcdc.run_folder import RunFolder
from dcdc.runtime.device import cpu_threads

_KEYS = (
    *("n_clusters", "sizes", "outliers", "network.sub_heads"),
    *("train.seed", "train.device", "train.threads"),
    *OF_MAIN_PHASE,
)
"""What may be asked for, beside the heads' own settings."""
_OF_HEADS = ("heads", "answering", "directions")
"""What a network has of its heads, and of the features that they were trained on."""
Read = Callable[[DataConfig], Data]


def regroup(
    earlier: RunFolder,
    overrides: Overrides,
    *,
    folder: RunFolder | None = None,
    read: Read | None = None,
    observer: Observer | None = None,
) -> tuple[RunResult, Data]:
    """`overrides`: the number of clusters, or what is to settle it, and settings of the heads.
    Images are read where the earlier run found them, by `read`."""
    _require_of_heads(overrides)
    observer = observer or SilentObserver()
    stored = read_config(earlier)
    device = str(overrides.given.get("train.device", "auto"))
    model = load(earlier.path, device)
    data = (read or _read)(stored.data)
    _require_images_of(earlier, data)

    def settle(config: RunConfig, vectors: Data, wanted: NumberRange) -> FoundNumber:
        return find_number(config, vectors, wanted, observer)

    with cpu_threads(stored.train.threads):
        vectors = data
        if not isinstance(data, VectorSet):
            model = _frozen(stored, model, device)
            with observer.counting("computing features") as progress:
                vectors = with_vectors(data, stored_features(model, data, progress))
        sizes = stored.sizes if isinstance(stored.sizes, str) else "free"
        usual: dict[str, Any] = {"train.seed": stored.train.seed, "sizes": sizes}
        usual |= {"outliers": stored.outliers, "train.threads": stored.train.threads}
        asked = replace(overrides, values={**usual, **overrides.values})
        prepared = prepare_run(vectors, asked, find_number=settle)
        result = run(prepared.config, vectors, observer=observer)
        config = _config(stored, prepared.config, data)
        answering = result.model
        if not isinstance(data, VectorSet):
            answering = _frozen(config, model, device)
            _take(answering, result.model, _is_of_heads)
        answering.config = to_mapping(config)
    metrics = result.metrics | data_shape(data) | _provenance(earlier)
    answering.metrics = metrics
    if folder is not None:
        write_run(folder, config, data, answering, metrics, result.history, prepared.number)
    number = prepared.number
    return replace(result, config=config, model=answering, metrics=metrics, number=number), data


def folder_beside(earlier: Path, n_clusters: int | str, *, overwrite: bool = False) -> RunFolder:
    """`runs/photos-8` of `runs/photos`, for a run that is to begin."""
    path = earlier if earlier.name else earlier.resolve()
    new = path.with_name(f"{path.name}-{n_clusters}")
    if new.exists() and not overwrite:
        raise InputError(f"{new} exists", remedy=("replace it by {overwrite}", "move it away"))
    return RunFolder.create(new, overwrite=overwrite)


def _require_of_heads(overrides: Overrides) -> None:
    given = overrides.given
    if overrides.preset is not None:
        raise InputError(
            "a preset is a recipe for training anew, and this groups a run's features by other "
            "heads",
            remedy="leave it out",
        )
    for key in given:
        if key not in _KEYS and not key.startswith("heads."):
            raise InputError(
                "has no meaning where the features of a run are grouped anew",
                parameter=key,
                value=given[key],
                remedy="leave it out, or train anew on the images",
            )
    if "n_clusters" not in given:
        raise InputError(
            "nothing says how many clusters there are to be", remedy="give {n_clusters=8}"
        )


def _read(data: DataConfig) -> Data:
    if not data.source:
        raise InputError(
            "the run was trained on arrays, which it does not keep: give a run of files"
        )
    return read_again(data)


def _require_images_of(earlier: RunFolder, data: Data) -> None:
    names = earlier.read_assignments()["name"].to_pylist()
    if names != list(data.names):
        raise InputError(
            f"the source has other images than {earlier.path} was trained on",
            remedy=("restore them", "start a new run by {run}"),
        )


def _frozen(config: RunConfig, of: TrainedModel, device: str) -> TrainedModel:
    """A model with that one's backbone, which stays as it is, and heads that have not begun."""
    network = replace(config.network, frozen=True, backbone=of.found_backbone or "")
    here = with_values(replace(config, network=network), {"train.device": device})
    made = build_model(with_values(here, {"train.precision": "auto"}))
    _take(made, of, lambda name: not _is_of_heads(name))
    made.network.freeze_backbone()
    made.config, made.found_backbone = to_mapping(here), of.found_backbone
    return made


def _is_of_heads(name: str) -> bool:
    return name.partition(".")[0] in _OF_HEADS


@torch.no_grad()
def _take(to: TrainedModel, of: TrainedModel, wanted: Callable[[str], bool]) -> None:
    """Those of its weights that are `wanted`, by name."""
    weights = {name: tensor for name, tensor in of.network.state_dict().items() if wanted(name)}
    to.network.load_state_dict(to.network.state_dict() | weights)


def _config(stored: RunConfig, heads: RunConfig, data: Data) -> RunConfig:
    """Of a run with that backbone, frozen, and these heads."""
    if isinstance(data, VectorSet):
        return replace(heads, data=stored.data)
    network = replace(
        stored.network,
        frozen=True,
        over_clusters=heads.network.over_clusters,
        sub_heads=heads.network.sub_heads,
    )
    # At once: the stored phases may not fit the heads' network, nor these phases the stored one.
    return replace(
        stored,
        n_clusters=heads.n_clusters,
        sizes=heads.sizes,
        outliers=heads.outliers,
        network=network,
        phases=heads.phases,
        train=heads.train,
    )


def _provenance(earlier: RunFolder) -> dict[str, Any]:
    """Whose features these are."""
    known = earlier.read_metrics()
    found: dict[str, Any] = {"features_of": str(earlier.path)}
    return found | ({"backbone": known["backbone"]} if "backbone" in known else {})

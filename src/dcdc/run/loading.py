"""The trained model of a run folder, of a model folder, or of a repository."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dcdc.config import RunConfig, from_mapping, to_mapping, with_values
from dcdc.engine.model_files import MODEL_FILES
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.networks.feature_vectors import VECTORS
from dcdc.networks.pretrained import spec_of_kept
from dcdc.prepare.assembly import build_model
from dcdc.run_folder import RunFolder
from dcdc.runtime.hub import fetch_folder
from dcdc.runtime.processes import ALONE, Processes


def load(path: str | Path, device: str = "auto", processes: Processes = ALONE) -> TrainedModel:
    """The model of a finished run, or of a model folder, ready to predict."""
    folder = RunFolder.open(Path(path))
    stored = read_config(folder)
    # A network trained in bfloat16 on a GPU answers in float32 on a CPU.
    network = stored.network
    found = spec_of_kept(network.backbone, folder.backbone)
    here = with_values(
        stored,
        {"train.device": device, "train.precision": "auto", "network.backbone": found},
    )
    needed: dict[str, Any] = {"n_clusters": stored.n_clusters}
    if network.backbone == VECTORS:
        needed |= {"data.n_features": stored.data.n_features}
    else:
        needed |= {"data.size": stored.data.size}
        needed |= {"network.mean": network.mean, "network.std": network.std}
    if stored.n_clusters is None and folder.search.is_dir() and not folder.model_file.exists():
        raise InputError(
            f"{folder.path} has no model yet: how many clusters it has is still looked for",
            remedy="finish it by dcdc fit {resume}",
        )
    if None in needed.values():
        raise InputError(
            f"{folder.config_file} does not describe a model: it needs {', '.join(needed)}"
        )
    weights = folder.read_model(to_mapping(stored))
    try:
        model = build_model(here, processes)
    except InputError:  # says enough: of a device that is not here, say
        raise
    except ValueError as error:
        raise InputError(f"{folder.config_file} does not describe a model: {error}") from None
    try:
        for name, own in model.network.state_dict().items():  # torch would round without a word
            if name in weights and weights[name].dtype.is_floating_point != own.is_floating_point():
                raise RuntimeError(f"{name} is of {weights[name].dtype}, not of {own.dtype}")
        model.network.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{folder.model_file} does not fit {folder.config_file}: {reason}"
        ) from None
    if stored.network.frozen:
        model.network.freeze_backbone()
    model.config, model.found_backbone = to_mapping(stored), found
    with suppress(InputError):  # absent or damaged: it is for the model card alone
        model.metrics = folder.read_metrics()
    model.names = folder.read_names()
    model.training_features = training_features(folder, model)
    return model


def training_features(folder: RunFolder, model: TrainedModel) -> Callable[[], Any]:
    return partial(folder.read_training_features, model.network.n_features)


def from_pretrained(
    repo_or_folder: str | Path, device: str = "auto", *, revision: str | None = None
) -> TrainedModel:
    """The model of a folder or, by the extra `hub`, of a Hugging Face repository OWNER/NAME."""
    folder = Path(repo_or_folder)
    if not folder.exists():
        folder = fetch_folder(str(repo_or_folder), MODEL_FILES, revision)
    return load(folder, device)


def read_config(folder: RunFolder) -> RunConfig:
    try:
        return from_mapping(folder.read_config())
    except InputError as error:
        if str(folder.config_file) in str(error):
            raise
        raise InputError(f"{folder.config_file}: {error}") from None

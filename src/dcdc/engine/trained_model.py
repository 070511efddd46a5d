"""A trained network that answers for new images.

Shapes: N images, D features, K clusters.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike

from dcdc.augment import OriginalCopy
from dcdc.data import Data, VectorSet, from_arrays, from_vectors, load_data, load_images
from dcdc.data.image_stream import holds_feature_vectors
from dcdc.data.sources import Given, given_source
from dcdc.data.store import Store, open_store
from dcdc.data.vector_store import open_vector_store
from dcdc.engine import model_files
from dcdc.engine.assignment import Assigned
from dcdc.engine.cluster_names import write_names
from dcdc.engine.history import HISTORY
from dcdc.engine.model_card import model_card, public_source
from dcdc.engine.network_on_store import NetworkOnStore
from dcdc.engine.out_of_distribution import OutOfDistributionScore, out_of_distribution_score_of
from dcdc.errors import InputError
from dcdc.networks import ClusteringNetwork, find_backbone
from dcdc.networks.pretrained import keep_files, public_spec
from dcdc.runtime.atomic_files import atomic_folder, write_arrays, write_text
from dcdc.runtime.environment import own_version
from dcdc.runtime.hub import push_folder
from dcdc.runtime.processes import ALONE, Processes

_ROWS_AT_ONCE = 2**16
"""Whose features are held to look for outliers."""


class Display(Protocol):
    """Shows what a model grouped when it was trained."""

    def gallery(self, per_cluster: int) -> Any: ...

    def report(self, path: str | Path | None) -> Path: ...


class TrainedModel(NetworkOnStore):
    """Takes images as training did: arrays of any usual layout, image files in a list, or a source
    as `dcdc fit` names it, all brought to its size. A model of feature vectors takes N x D numbers,
    or a source of them."""

    def __init__(
        self,
        network: ClusteringNetwork,
        original_copy: OriginalCopy | None,
        *,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
        config: Mapping[str, Any] | None = None,
        processes: Processes = ALONE,
    ) -> None:
        """`config`: the plain values it was built from; without them it cannot be saved."""
        super().__init__(
            network, original_copy, device=device, autocast=autocast, processes=processes
        )
        self.config = config
        self.metrics: Mapping[str, Any] | None = None
        """What its run measured, where that is known."""
        self.names: Mapping[int, str] = {}
        """What people call its clusters."""
        self.found_backbone: str | None = None
        """Spec by which its backbone is found, where that is not its config's."""
        self.training_features: Callable[[], np.ndarray | None] = _none_known
        """n x D of some training images, where they are kept; read when asked for. Where there are
        outliers among these, it is without them."""
        self.display: Display | None = None
        """Of the images it was trained on, where they are known."""

    def __repr__(self) -> str:
        takes = f"vectors of {self.network.n_features}"
        if not self.takes_vectors:
            takes = f"images of {self.size}x{self.size}x{self.network.in_channels}"
        backbone = "" if self.config is None else f", {self.config['network']['backbone']!r}"
        return f"<TrainedModel of {self.n_clusters} clusters: {takes}{backbone}, {self.device}>"

    def _repr_html_(self) -> str | None:
        """In notebooks: the gallery of its clusters; None where it is not known what it grouped."""
        if self.display is None:
            return None
        try:
            html: str = self.show_clusters()._repr_html_()
        except InputError as error:  # of a damaged run folder: no reason to fail in a display
            html = f"<p>{escape(str(error))}</p>"
        return f"<pre>{escape(repr(self))}</pre>{html}"

    def show_clusters(self, per_cluster: int = 8) -> Any:
        """Images of each cluster, half by chance: pictures in a notebook, elsewhere a table."""
        return self._displayed().gallery(per_cluster)

    def report(self, path: str | Path | None = None) -> Path:
        """Writes the page of its run, into the run folder or to `path`; where it lies."""
        return self._displayed().report(path)

    def _displayed(self) -> Display:
        if self.display is None:
            raise InputError(
                "this model does not know what it grouped: load a run folder by dcdc.load"
            )
        return self.display

    def predict(self, images: ArrayLike | Given) -> np.ndarray:
        """N int64: the cluster of each image; -1 for none, where outliers are looked for."""
        return self.assign(self.image_set(images)).assignments

    def predict_proba(self, images: ArrayLike | Given) -> np.ndarray:
        """N x K: the share of each cluster in each image."""
        return self.assign(self.image_set(images)).probabilities

    def transform(self, images: ArrayLike | Given) -> np.ndarray:
        """N x D: the features that the heads see."""
        return self.features(self.image_set(images))

    def save(self, folder: str | Path) -> Path:
        """A model folder: weights, settings, names and a model card, for `dcdc.load`.

        An older model of ours there is replaced in one step; anything else is refused."""
        path = Path(folder)
        return self._save(path, path.resolve().name, f'dcdc.load("{path.name}")')

    def push_to_hub(self, repo: str, *, private: bool | None = None) -> str:
        """The model folder as a repository OWNER/NAME of the Hugging Face hub; its address.

        `dcdc.from_pretrained` gets it back. Needs the extra `hub`, and the hub's own login.
        """
        with TemporaryDirectory() as folder:
            model = self._save(Path(folder) / "model", repo, f'dcdc.from_pretrained("{repo}")')
            return push_folder(model, repo, private=private)

    def _save(self, path: Path, title: str, loading: str) -> Path:
        if self.config is None:
            raise InputError("this model does not know its settings, so it cannot be saved")
        _check_place(path)
        # Folders of whoever trained it stay at home.
        config, metrics = _public(self.config), self.metrics
        if metrics is not None and metrics.get("backbone"):
            metrics = {**metrics, "backbone": _public_backbone(metrics["backbone"])}
        if metrics is not None:
            metrics = {key: value for key, value in metrics.items() if key != "features_of"}
        if metrics is not None and metrics.get("refined"):
            told = metrics["refined"]
            metrics = {**metrics, "refined": {**told, "source": Path(told["source"]).name}}
        found = self.found_backbone or self.config["network"]["backbone"]
        card = model_card(title, loading, config, metrics, self.names)
        features = self.training_features()
        with atomic_folder(path.resolve()) as folder:
            note = model_files.weights_note(own_version(), config, find_backbone(found).files)
            model_files.write_weights(folder / model_files.WEIGHTS, self.network, note)
            if self.names:
                write_names(folder / model_files.NAMES, self.names)
            if metrics is not None:
                model_files.write_metrics(folder / model_files.METRICS, metrics)
            if features is not None:
                arrays = {"features": features.astype(np.float16)}
                write_arrays(folder / model_files.REFERENCE, arrays)
            keep_files(found, folder / model_files.BACKBONE)
            write_text(folder / model_files.CARD, card)
            model_files.write_config(folder / model_files.CONFIG, config)
        return path

    def image_set(self, images: Any) -> Data:
        source = given_source(images)
        if source is not None:
            return self._read(source)
        if self.takes_vectors:
            return from_vectors(images, may_be_equal=True)
        return from_arrays(images, size=self.size)

    def _read(self, source: str | Path | list[Path]) -> Data:
        self.require_own_kind(source)
        if not self.takes_vectors:
            return load_images(source, size=self.size, channels=self.network.in_channels)
        assert not isinstance(source, list)
        return load_data(source, may_be_equal=True)

    def require_own_kind(self, source: Given, column: str | None = None) -> None:
        """Refuses feature vectors for a model of images, and images for one of feature vectors."""
        holds_vectors = holds_feature_vectors(source, column)
        if holds_vectors == self.takes_vectors:
            return
        where = source if isinstance(source, str | Path) else source[0]
        if holds_vectors:
            raise InputError(
                f"the model was trained on images, {where} holds feature vectors: give images"
            )
        raise InputError(
            f"the model was trained on feature vectors, {where} holds images: give the features "
            "that the same backbone makes of them"
        )

    @property
    def finds_outliers(self) -> bool:
        """Whether images that are far from its training images belong to no cluster."""
        return bool((self.config or {}).get("outliers"))

    @cached_property
    def out_of_distribution(self) -> OutOfDistributionScore | None:
        """None where too few training images are kept to tell."""
        features = self.training_features()
        return None if features is None else out_of_distribution_score_of(features)

    def assign(self, image_set: Data) -> Assigned:
        store = self._store_of(image_set)
        known = self.out_of_distribution if self.finds_outliers else None
        if known is None:
            return self.assign_store(store)
        rows, outside = [], []
        for some in np.array_split(np.arange(len(store)), max(1, len(store) // _ROWS_AT_ONCE)):
            features, assigned = self.look_at(store, some)
            rows.append(assigned.probabilities)
            outside.append(known.score(features) > 1)
        return Assigned(np.concatenate(rows), np.concatenate(outside))

    def features(self, image_set: Data) -> np.ndarray:
        store = self._store_of(image_set)
        return self.features_of(store, np.arange(len(store)))

    def _store_of(self, image_set: Data) -> Store:
        n_sharing = self.processes.launch.local_size
        self._check(image_set)
        if isinstance(image_set, VectorSet):
            return open_vector_store(image_set.vectors, self.device, n_sharing=n_sharing)
        return open_store(image_set.images, self.device, n_sharing=n_sharing)

    def _check(self, image_set: Data) -> None:
        if isinstance(image_set, VectorSet):
            if not self.takes_vectors:
                raise InputError(
                    "the model was trained on images, these are feature vectors: give images"
                )
            if image_set.n_features != self.network.n_features:
                raise InputError(
                    f"the model was trained on vectors of {self.network.n_features} features, "
                    f"these have {image_set.n_features}: give those of the same backbone"
                )
            return
        if self.takes_vectors:
            raise InputError(
                "the model was trained on feature vectors, these are images: give the features of "
                "the same backbone"
            )
        wanted = self.network.in_channels
        if image_set.channels != wanted:
            raise InputError(
                f"the model was trained on images of {wanted} channel(s), "
                f"these have {image_set.channels}: convert them first"
            )


def _none_known() -> None:
    return None


def _public(config: Mapping[str, Any]) -> dict[str, Any]:
    data = {**config["data"], "source": public_source(config["data"]["source"])}
    network = {**config["network"], "backbone": public_spec(config["network"]["backbone"])}
    return {**config, "data": data, "network": network}


def _public_backbone(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run's metrics."""
    name, told = backbone["name"], backbone.get("pretrained")
    if told and told["name"] == name:
        told = {**told, "name": public_spec(name)}
    return {**backbone, "name": public_spec(name), "pretrained": told}


def _check_place(path: Path) -> None:
    """New, empty, or a model folder of ours, which can be replaced whole."""
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file: give a folder")
    if os.path.ismount(path) or Path.cwd().is_relative_to(path.resolve()):
        raise InputError(f"{path} cannot be replaced whole: save into a folder below it")
    if (path / HISTORY).exists():
        raise InputError(f"{path} is a run folder and holds its model already: save elsewhere")
    stranger = next(model_files.MODEL_FOLDER.strangers(path), None)
    if stranger is not None:
        raise InputError(
            f"{path} holds {stranger.relative_to(path)} and is no model folder: save elsewhere"
        )
    if any(path.iterdir()) and not model_files.is_own_config(path / model_files.CONFIG):
        raise InputError(f"{path} holds a model of something else: save elsewhere")

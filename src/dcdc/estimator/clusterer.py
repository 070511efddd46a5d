"""DCDC as scikit-learn knows it: a clusterer, and a transformer into the features it learned."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dcdc.config import RunConfig
from dcdc.data import Data
from dcdc.engine.assignment import Assigned
from dcdc.engine.taught import Taught
from dcdc.errors import InputError, Interrupted
from dcdc.estimator.corrections import taught_in_python, train_on
from dcdc.estimator.inputs import read_more
from dcdc.estimator.layout import Layout, layout_of
from dcdc.estimator.preparation import prepare
from dcdc.estimator.restarts import (
    Fitted,
    check_criterion,
    criterion_of,
    model_from,
    train,
    train_all,
    weights_of,
)
from dcdc.estimator.settings import config_to_go_on, is_module, make_known, seed_of
from dcdc.estimator.showing import Grouped
from dcdc.estimator.watching import watching
from dcdc.estimator.words import in_python_words
from dcdc.metrics import cluster_accuracy, health_warnings, label_free_score, partition_health
from dcdc.metrics.health import OUTLIER
from dcdc.prepare.overrides import Overrides
from dcdc.runtime.device import cpu_threads

if TYPE_CHECKING:
    from dcdc.report.cluster_gallery import ClusterGallery

_WEIGHTS = "_weights"


class DCDC(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Doubly Contrastive Deep Clustering of images or feature vectors: see docs/estimator.md.

        DCDC(n_clusters=10).fit_predict(embeddings)  # N x D, of any backbone
        DCDC(n_clusters=10).fit_predict("photos/")

    X is N x D numbers, a feature vector for each image (an array, a DataFrame, a torch tensor); or
    images: N x H x W, N x H x W x C or N x C x H x W (uint8, integers, floats from 0 to 1 or to
    255), flat rows of such images by `image_shape`, a list of paths; or a folder or file, as
    `dcdc fit` reads it; or an `ImageSet` or `VectorSet`.

    Parameters
    ----------
    n_clusters : how many to find. "auto", or a range such as "5-40": what the images settle on.
        "classes": as many as X has classes, or a folder sub-folders.
        None: the same, but sub-folders are not counted.
    sizes : of the clusters. "free": whatever the images ask for; or the share of each, in any
        order; None: "equal".
    outliers : whether images that are far from every cluster belong to none: their label is -1.
    preset : a named recipe. None: settings follow from the images.
    epochs, batch_size : over the recipe's.
    backbone : what makes features of images: "efficientnet-lite0", "timm:...", "hf:...",
        "scratch" (train one on X alone), or an `nn.Module`. None: as `dcdc fit` chooses;
        `config_.network.backbone` says which.
    fine_tune : train a pretrained backbone further; otherwise it is frozen.
    image_shape : of one image in a flat row, such as (28, 28) or (3, 32, 32). None: rows are
        feature vectors.
    value_range : the values that are black and white; other values are clipped. None: 0..255, or
        0..1 where all floats are.
    n_init : trainings, each from another seed; `n_init_criterion` chooses one without labels:
        "loss" (of the cluster head, on perturbations of its own), "agreement" (with the other
        partitions) or "confidence". Phases of features alone are trained once for all.
    warm_start : `fit` goes on from the weights of the last one, for `epochs` more.
    device : "auto", "cpu", "cuda" or "mps".
    n_jobs : processes for several `n_init` on a CPU; otherwise without meaning.
    random_state : an integer is the seed, as on the command line.
    verbose : None shows a bar on a terminal and in a notebook, and nothing elsewhere; 0 nothing; 1
        prints a line per epoch.
    settings : any `section.key` of a config, as --set has it on the command line.

    Attributes
    ----------
    labels_, cluster_sizes_ : the cluster of every image of `fit`, or -1; how many each has.
    names_ : of the images, in their order, where X was read from files; otherwise None.
    n_iter_, loss_curve_ : epochs trained, and the mean loss of each.
    config_ : every setting, as resolved on the images.
    model_ : the trained network.
    n_clusters_ : how many there are; cluster_number_ : how the images settled it, with "auto".
    init_scores_ : with n_init > 1, the criterion of each training; higher is better.
    n_features_in_, feature_names_in_ : as scikit-learn has them.
    """

    _layout: Layout
    _one_cluster: bool
    _rounds: int
    """Fits that went on from the one before."""
    _module: Any
    """The backbone, where it is known to this process alone."""
    _grouped: Grouped
    _reference: Any
    """Features that new images are compared with, where there are outliers."""

    def __init__(
        self,
        n_clusters: int | str | None = 10,
        *,
        sizes: str | Sequence[float] | None = None,
        outliers: bool = False,
        preset: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        backbone: Any = None,
        fine_tune: bool = False,
        image_shape: tuple[int, ...] | None = None,
        value_range: tuple[float, float] | None = None,
        n_init: int = 1,
        n_init_criterion: str = "loss",
        warm_start: bool = False,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.sizes = sizes
        self.outliers = outliers
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.backbone = backbone
        self.fine_tune = fine_tune
        self.image_shape = image_shape
        self.value_range = value_range
        self.n_init = n_init
        self.n_init_criterion = n_init_criterion
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.settings = settings

    def fit(self, X: Any, y: object = None, *, copies: Any = None) -> Self:  # noqa: ARG002, N803
        """Trains on X. Ctrl-C after the first epoch keeps the last finished one, and warns.

        `copies`, N x D: feature vectors of another copy of the same images, in their order. Heads
        then compare the two, where otherwise neighbours alone would do.
        """
        with in_python_words():
            return self._fit(X, copies)

    def _fit(self, given: Any, copies: Any) -> Self:
        check_criterion(self.n_init_criterion)
        if not isinstance(self.n_init, int | np.integer) or self.n_init < 1:
            raise InputError(f"n_init={self.n_init!r} must be a whole number from 1")
        going_on = self.warm_start and hasattr(self, "model_")
        rounds = self._rounds + 1 if going_on else 0

        def go_on(config: RunConfig, data: Data) -> RunConfig:
            return config_to_go_on(config, self.config_, data, rounds)

        seed = seed_of(self.random_state)
        with watching(self.verbose) as observer, observer.counting("reading") as progress:
            go_on_by = go_on if going_on else None
            prepared, layout = prepare(self, given, copies, seed, go_on_by, progress)
        config, image_set = prepared.config, prepared.images
        module = self.backbone if is_module(self.backbone) else None
        with _ctrl_c_as_in_python():
            if going_on:
                weights = weights_of(self.model_)
                found = [train(config, image_set, weights=weights, verbose=self.verbose)]
            else:
                found = train_all(
                    config,
                    image_set,
                    n_init=self.n_init,
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                    backbone=module,
                    first=prepared.first,
                )
        earlier = self.loss_curve_ if going_on else []
        self.names_ = list(image_set.names) if layout is None else None
        self._layout = layout_of(image_set) if layout is None else layout
        self._one_cluster, self._rounds, self._module = self.n_clusters == 1, rounds, module
        self.n_features_in_ = self._layout.n_features
        self._keep(found, earlier, image_set)
        self.n_clusters_ = int(self.config_.n_clusters or 0)
        self.cluster_number_ = prepared.number
        return self

    def _keep(
        self,
        found: list[Fitted],
        earlier: list[float],
        image_set: Data,
        taught: Taught | None = None,
    ) -> None:
        fitted = found[0]
        self.init_scores_ = None
        if len(found) > 1:
            self.init_scores_ = criterion_of(found, self.n_init_criterion)
            fitted = found[int(self.init_scores_.argmax())]
        self.model_ = model_from(fitted.config, fitted.weights, fitted.reference)
        self._reference = fitted.reference
        self.config_ = fitted.config
        probabilities = self._of_clusters(fitted.probabilities)
        assigned = Assigned(probabilities, fitted.outside, fitted.said)
        self.labels_ = assigned.assignments
        inside = self.labels_[self.labels_ != OUTLIER]
        self.cluster_sizes_ = np.bincount(inside, minlength=probabilities.shape[1])
        self.loss_curve_ = earlier + [record["loss"] for record in fitted.history]
        self.n_iter_ = len(self.loss_curve_)
        self._grouped = Grouped(
            image_set,
            image_set.names,
            self.labels_,
            assigned.confidence,
            probabilities.shape[1],
            fitted.metrics,
            fitted.history,
            taught,
        )
        notes = []
        if not self._one_cluster:
            notes = health_warnings(partition_health(probabilities, self.labels_))
        if found[-1].stopped_by:
            notes.insert(0, _what_is_left(found, fitted))
        for note in notes:
            warnings.warn(note, ConvergenceWarning, stacklevel=4)

    def refine(self, edits: Any, X: Any = None, *, whole_network: bool = False) -> Self:  # noqa: N803
        """Trains on from the last `fit`, by what people corrected in its `labels_`, as
        `dcdc refine` does; images that belong to no cluster have the label -1 then.

            model.refine([
                {"kind": "move", "images": [3, 17], "to": 2},
                {"kind": "merge", "clusters": [4], "into": 1},
                {"kind": "apart", "images": [5, 6]},
            ])

        `edits` is a list of edits as `edits.json` has them (docs/refine.md), or such a file; images
        are numbers of rows. X is needed after unpickling alone: the images of `fit`, in their
        order. `whole_network` trains the backbone too, not the cluster head alone.
        """
        check_is_fitted(self, "model_")
        data = self._grouped.data if X is None else self._read(X)
        with in_python_words():
            return self._refine(edits, data, whole_network=whole_network)

    def _refine(self, edits: Any, data: Data | None, *, whole_network: bool) -> Self:
        grouped = self._grouped
        if data is None:
            raise InputError("refine needs the images, which a pickle does not hold: give X")
        if self._one_cluster:
            raise InputError("n_clusters=1 has nothing to correct: fit with more")
        if data.n_images != len(grouped.labels):
            raise InputError(
                f"X has {data.n_images} images, and fit had {len(grouped.labels)}: give the same"
            )
        taught = taught_in_python(edits, grouped, grouped.taught)
        here = {"train.device": self.device, "train.seed": seed_of(self.random_state)}
        with _ctrl_c_as_in_python():
            fitted = train_on(
                taught,
                data,
                self.model_,
                self.config_,
                Overrides(here),
                whole_network=whole_network,
                verbose=self.verbose,
            )
        self._keep([fitted], self.loss_curve_, data, taught)
        self.n_clusters_ = taught.n_clusters
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """N: the cluster of each image; -1 for none, with `outliers`."""
        image_set = self._read(X)
        with cpu_threads(self.config_.train.threads), in_python_words():
            return self._labels(image_set)

    def _labels(self, image_set: Data) -> NDArray[np.int64]:
        found = self.model_.assign(image_set)
        return Assigned(self._of_clusters(found.probabilities), found.outside).assignments

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """N x K: the share of each cluster in each image."""
        image_set = self._read(X)
        with cpu_threads(self.config_.train.threads), in_python_words():
            return self._of_clusters(self.model_.assign(image_set).probabilities)

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """N x D: the features that the heads see."""
        image_set = self._read(X)
        with cpu_threads(self.config_.train.threads), in_python_words():
            return self.model_.features(image_set)

    def score(self, X: Any, y: ArrayLike | None = None) -> float:  # noqa: N803
        """With targets the ACC, under the best matching of clusters to classes; without, the mean
        silhouette of the clusters among the features (docs/estimator.md: what it can tell)."""
        image_set = self._read(X)
        with cpu_threads(self.config_.train.threads), in_python_words():
            labels = self._labels(image_set)
            if y is not None:
                return cluster_accuracy(y, labels)
            return label_free_score(self.model_.features(image_set), labels)

    def show_clusters(self, per_cluster: int = 8) -> "ClusterGallery":
        """The images that each cluster is surest of: pictures in a notebook, elsewhere a table."""
        check_is_fitted(self, "model_")
        return self._grouped.gallery(per_cluster)

    def report(self, path: str | Path | None = None) -> Path:
        """Writes the page of this training, as `dcdc fit` has it; where it lies. None:
        dcdc-report.html, here."""
        check_is_fitted(self, "model_")
        with in_python_words():
            return self._grouped.report(self.config_, self.model_, path)

    def _repr_html_inner(self) -> str:
        """scikit-learn's picture of the estimator and, where it is fitted, the gallery."""
        html: str = super()._repr_html_inner()
        return html + self.show_clusters()._repr_html_() if hasattr(self, "model_") else html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _read(self, given: Any) -> Data:
        check_is_fitted(self, "model_")
        with in_python_words():
            model = self.model_
            channels = model.network.in_channels
            size = 0 if model.takes_vectors else model.size
            return read_more(self, given, self._layout, size, channels, self.config_.data)

    def _of_clusters(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """One cluster, which the network cannot have, is its two together."""
        if self._one_cluster:
            return np.ones((len(probabilities), 1), np.float32)
        return probabilities

    @property
    def _n_features_out(self) -> int:
        return self.model_.network.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # features are float32
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            state[_WEIGHTS] = weights_of(state.pop("model_"))
            state["_grouped"] = replace(state["_grouped"], data=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        weights = state.pop(_WEIGHTS, None)
        super().__setstate__(state)
        if weights is not None:
            make_known(self._module, self.config_.network.backbone)
            self.model_ = model_from(self.config_, weights, self._reference)


@contextmanager
def _ctrl_c_as_in_python() -> Iterator[None]:
    try:
        yield
    except Interrupted as stopped:
        if stopped.signal == "SIGINT":
            raise KeyboardInterrupt from None
        raise SystemExit(143) from None


def _what_is_left(found: list[Fitted], chosen: Fitted) -> str:
    if len(found) > 1 or not chosen.was_cut_short:
        return f"Ctrl-C: the answer is of the {len(found)} training(s) that were finished"
    return f"Ctrl-C: the model is that of epoch {len(chosen.history)}, the last finished one"

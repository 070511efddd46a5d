"""Methods by name: those of this package, of installed packages, and of code that registers one."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, get_args, get_type_hints

import numpy as np

from dcdc.data import Data, ImageSet, VectorSet
from dcdc.errors import InputError, TrainingError
from dcdc.methods.context import Clustering, Context
from dcdc.prepare.resolve import require_several
from dcdc.registry import Registry


@dataclass(frozen=True)
class Method:
    name: str
    title: str
    """In a table."""
    function: str
    """`module:function`, imported when it is asked for; another process finds it by this, too."""
    non_negative: bool = False
    """Whether it takes no value below 0."""

    def load(self) -> Callable[..., Clustering]:
        try:
            found: Callable[..., Clustering] = resolve_name(self.function)
        except (ImportError, AttributeError) as error:
            raise InputError(f"method {self.name!r} is not at {self.function}: {error}") from error
        return found

    def settings(self) -> dict[str, Any]:
        """Defaults by name: the keyword-only arguments of the signature."""
        parameters = inspect.signature(self.load()).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}

    def setting_types(self) -> dict[str, Any]:
        return get_type_hints(self.load())

    def kinds(self) -> tuple[type, ...]:
        """What it takes, by the type of its first argument: images where there is none."""
        function = self.load()
        first = next(iter(inspect.signature(function).parameters), "")
        hint = get_type_hints(function).get(first, ImageSet)
        return get_args(hint) or (hint,)

    def require_fit(self, data: Data) -> None:
        """Refuses data that the method cannot take at all."""
        kinds, is_vectors = self.kinds(), isinstance(data, VectorSet)
        if not isinstance(data, kinds):
            if is_vectors:
                raise InputError(f"{self.name} takes images, not feature vectors")
            raise InputError(
                f"{self.name} takes feature vectors, not images",
                remedy="name the pretrained network that makes them by {backbone}",
            )
        if self.non_negative and isinstance(data, VectorSet):
            n_below = _n_rows_below_zero(data)
            if n_below:
                raise InputError(
                    f"{self.name} takes no value below 0, and {n_below:,} of {data.n_images:,} "
                    "feature vectors have one"
                )

    def fits(self, data: Data) -> bool:
        try:
            self.require_fit(data)
        except InputError:
            return False
        return True

    def cluster(
        self,
        image_set: Data,
        n_clusters: int,
        seed: int,
        context: Context | None = None,
        **settings: Any,
    ) -> Clustering:
        """Refuses what no method can do, and an answer that is none."""
        check_task(image_set, n_clusters)
        self.require_fit(image_set)
        found = self.load()(image_set, n_clusters, seed, context or Context(), **settings)
        check_answer(found, image_set.n_images, n_clusters, self.name)
        return found


class _Methods(Registry[Method]):
    def _load(self, name: str) -> Method:
        """The entry point of an installed package is the function itself."""
        point = self._from_outside().get(name)
        return Method(name, name, f"{point.module}:{point.attr}") if point else super()._load(name)


METHODS = _Methods("method", "dcdc.methods", {})


def register_method(
    name: str,
    function: str | Callable[..., Clustering],
    title: str | None = None,
    *,
    non_negative: bool = False,
) -> None:
    """Adds a method under `name`, as `dcdc compare --methods` takes it.

    `function` is `cluster(image_set, n_clusters, seed, context, *, ...settings)`, or where it is
    found, as `module:function`. `dcdc compare` runs it in another process: it must be importable
    there, so not of a script or inside another function. The type of `image_set` says what it
    takes: `ImageSet` (or nothing), `VectorSet`, or `Data`, which is both. `title` is for tables,
    by default the name. `non_negative`: it takes no feature vectors with values below 0.
    """
    if not isinstance(function, str):
        function = f"{function.__module__}:{function.__qualname__}"
    module, colon, place = function.partition(":")
    if not re.fullmatch(r"[\w-]+", name):
        raise InputError(f"method name {name!r} must be of letters, digits, - and _")
    if not colon or module == "__main__" or "<" in place:
        raise InputError(f"method {name!r} is {function}: give a function that can be imported")
    METHODS.register(name, Method(name, title or name, function, non_negative))


def find_method(name: str) -> Method:
    return METHODS.get(name)


def check_task(image_set: Data, n_clusters: int) -> None:
    """What no method can do: too few images, one cluster, nothing to tell apart."""
    n_images = image_set.n_images
    require_several(n_images)
    if not 2 <= n_clusters <= n_images:
        raise InputError(
            f"{n_clusters} clusters for {n_images} images",
            remedy=f"give {{n_clusters}} from 2 to {n_images}",
        )
    rows = image_set.vectors if isinstance(image_set, VectorSet) else image_set.images
    if all((rows[i : i + 4096] == rows[:1]).all() for i in range(0, n_images, 4096)):
        raise InputError(f"all {n_images} images are the same: there is nothing to tell apart")


def _n_rows_below_zero(data: VectorSet) -> int:
    rows = data.vectors
    return sum(
        int((rows[at : at + 4096] < 0).any(axis=1).sum()) for at in range(0, len(rows), 4096)
    )


def check_answer(found: Clustering, n_images: int, n_clusters: int, method: str) -> None:
    """What every score takes for granted."""
    answers = found.assignments
    if answers.shape != (n_images,) or answers.dtype != np.int64:
        raise TrainingError(
            f"{method} answered {answers.shape} of {answers.dtype} for {n_images} images"
        )
    if answers.min() < 0 or answers.max() >= n_clusters:
        raise TrainingError(
            f"{method} answered clusters {answers.min()} to {answers.max()} of {n_clusters}"
        )


for _name, _title in {
    "k-means": "K-Means",
    "sc": "SC",
    "ac": "AC",
    "nmf": "NMF",
    "untrained": "Untrained",
    "ae": "AE",
    "dae": "DAE",
    "dcgan": "DCGAN",
    "decnn": "DeCNN",
    "vae": "VAE",
    "jule": "JULE",
    "dec": "DEC",
    "dac": "DAC",
    "adc": "ADC",
    "ddc": "DDC (approximation)",
    "dccm": "DCCM",
    "iic": "IIC",
    "pica": "PICA",
    "scan": "SCAN",
    "cc": "CC",
    "gmm": "GMM",
    "temi": "TEMI",
    "turtle": "TURTLE",
    "dcdc": "DCDC",
}.items():
    register_method(
        _name,
        f"dcdc.methods.{_name.replace('-', '_')}:cluster",
        _title,
        non_negative=_name == "nmf",
    )

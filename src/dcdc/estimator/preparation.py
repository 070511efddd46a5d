"""From an estimator's parameters and X to a run that is ready to train."""

import warnings
from collections.abc import Callable
from typing import Any

from dcdc.config import RunConfig
from dcdc.data import Data, VectorSet
from dcdc.data.decoded import Progress
from dcdc.data.left_out import told
from dcdc.errors import InputError
from dcdc.estimator.inputs import Source, read_first
from dcdc.estimator.layout import Layout, Wanted, require_meaning
from dcdc.estimator.settings import overrides_of, spec_of
from dcdc.networks import find_backbone
from dcdc.number_search import find_number
from dcdc.prepare.cluster_number import by_number
from dcdc.prepare.prepare_run import Adjust, Prepared, prepare_run, read_plainly
from dcdc.prepare.pretrained_choice import from_scratch


def prepare(
    estimator: Any,
    given: Any,
    copies: Any,
    seed: int,
    go_on: Adjust | None,
    progress: Progress | None = None,
) -> tuple[Prepared, Layout | None]:
    """With the layout of X, where it was no file. `go_on`: how a warm start changes the config."""
    parameters = estimator.get_params(deep=False)
    backbone = spec_of(parameters["backbone"])
    overrides = overrides_of(parameters, seed, backbone, going_on=go_on is not None)
    # Checks the parameters alone first: a wrong one is named before images are read.
    asked = by_number(from_scratch(overrides)).alone()
    wanted = Wanted.of(parameters, asked.data.size, asked.data.on_bad)
    source, layout = read_first(estimator, given, wanted, copies, progress)

    def checked(data: Data) -> Data:
        _require_enough(data, asked.n_clusters)
        left_out = getattr(data, "left_out", {})
        if left_out:
            warnings.warn(f"left out: {told(left_out)}", UserWarning, stacklevel=2)
        if isinstance(data, VectorSet):
            require_meaning(wanted, parameters["preset"])
        return data

    prepared = prepare_run(
        _checked_source(source, checked),
        overrides,
        read=lambda data, side: checked(read_plainly(data, side, progress)),
        adjust=go_on,
        find_number=find_number,
    )
    if parameters["fine_tune"]:
        _require_pretrained(prepared.config)
    return prepared, layout


def _checked_source(source: Source, check: Callable[[Data], Data]) -> Source:
    """Text is read elsewhere."""
    if callable(source):
        read = source
        return lambda side: check(read(side))
    return check(source) if isinstance(source, Data) else source


def _require_enough(image_set: Data, n_clusters: int | None) -> None:
    n_images, wanted = image_set.n_images, max(2, n_clusters or 2)
    if n_images < wanted:
        raise InputError(
            f"n_samples={n_images} cannot fill n_clusters={n_clusters}: give at least {wanted} "
            "images, or lower n_clusters"
        )


def _require_pretrained(config: RunConfig) -> None:
    name = config.network.backbone
    if find_backbone(name).pretrained is None:
        raise InputError(
            f"fine_tune=True has no meaning with the backbone {name}, which is not pretrained: "
            "leave it out, or name a pretrained backbone"
        )

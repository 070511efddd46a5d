"""What people corrected in a fitted estimator's `labels_`, and the training that learns from it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcdc.config import RunConfig
from dcdc.data import Data
from dcdc.engine.edits import Edits, RunAnswers, read_edits
from dcdc.engine.taught import Taught, taught_by
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.estimator.restarts import Fitted, fitted_of, weights_of
from dcdc.estimator.showing import Grouped
from dcdc.estimator.watching import watching
from dcdc.prepare.overrides import Overrides
from dcdc.refining import learn
from dcdc.stored import files
from dcdc.stored.schema import Unfit


def taught_in_python(given: Any, grouped: Grouped, earlier: Taught | None) -> Taught:
    """`given`: edits, their file, or a list of them whose images are rows. `earlier`: what the
    estimator had been taught before."""
    answers = RunAnswers(grouped.names, grouped.labels, grouped.n_clusters)
    edits = _edits(given, answers)
    doubt = float(1 - grouped.confidence.mean(dtype=np.float64))
    return taught_by(edits, answers, earlier=earlier, doubt=doubt)


def train_on(
    taught: Taught,
    data: Data,
    model: TrainedModel,
    config: RunConfig,
    overrides: Overrides,
    *,
    whole_network: bool,
    verbose: int | None,
) -> Fitted:
    """From the model and its config, on the images of its fit."""
    with watching(verbose) as observer:
        result = learn(
            config,
            weights_of(model),
            data,
            taught,
            overrides,
            whole_network=whole_network,
            observer=observer,
            keep_finished=True,
        )
    return fitted_of(result)


def _edits(given: Any, answers: RunAnswers) -> Edits:
    if isinstance(given, Edits):
        return given
    if isinstance(given, str | Path):
        return read_edits(Path(given), answers)
    if not isinstance(given, Sequence) or not all(isinstance(each, Mapping) for each in given):
        raise InputError("edits must be a list of dicts, such as {'kind': 'move', ...}, or a file")
    edits = Edits(answers.digest, tuple(_with_names(each, answers.names) for each in given))
    try:
        files.EDITS.checked(edits.content)
    except Unfit as error:
        raise InputError(f"edits cannot be read: {error}") from None
    return edits


def _with_names(edit: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """As edits.json has it: images as [row, name], numbers as Python's own."""
    found = {key: _plain(value) for key, value in edit.items()}
    if not isinstance(found.get("images"), list):
        return found
    return found | {"images": [_with_name(image, names) for image in found["images"]]}


def _with_name(image: Any, names: Sequence[str]) -> Any:
    if not isinstance(image, int):
        return image
    if not 0 <= image < len(names):
        raise InputError(f"edits speak of image {image}, and there are 0 to {len(names) - 1}")
    return [image, names[image]]


def _plain(value: Any) -> Any:
    """Without NumPy's types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple | range) else value

"""The images whose features and assignments a run left for its report.

Shapes: n images of the sample, v of its views, D features, K clusters.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class RunSample:
    rows: NDArray[np.int64]  # n, rising: positions in the set
    features: NDArray[np.float32]  # n x D
    assign: NDArray[np.float32]  # n x K
    view_rows: NDArray[np.int64]  # v, rising: positions in the set
    view_assign: NDArray[np.float32]  # v x K
    view_assign_perturbed: NDArray[np.float32]  # v x K, of one perturbed copy each


def read_sample(folder: "RunFolder") -> RunSample | None:
    """None where the run has none; a file that does not fit the run is refused."""
    arrays = folder.read_sample()
    if arrays is None:
        return None
    metrics = folder.read_metrics()
    problem = _problem(arrays, int(metrics["n_images"]), int(metrics["n_clusters"]))
    if problem:
        raise InputError(
            f"sample file {folder.sample_file} does not fit its run ({problem}): remove it, and "
            "dcdc report makes it again"
        )
    as_float = {name: arrays[name].astype(np.float32) for name in arrays if "rows" not in name}
    return RunSample(
        rows=arrays["rows"].astype(np.int64),
        features=as_float["features"],
        assign=as_float["assign"],
        view_rows=arrays["view_rows"].astype(np.int64),
        view_assign=as_float["view_assign"],
        view_assign_perturbed=as_float["view_assign_perturbed"],
    )


def _problem(arrays: dict[str, np.ndarray], n_images: int, n_clusters: int) -> str | None:
    missing = [field.name for field in fields(RunSample) if field.name not in arrays]
    if missing:
        return f"it has no {missing[0]}"
    for name in ("rows", "view_rows"):
        rows = arrays[name]
        if rows.ndim != 1 or rows.dtype.kind != "i" or not len(rows):
            return f"{name} are not positions"
        if rows[0] < 0 or rows[-1] >= n_images or (np.diff(rows) <= 0).any():
            return f"{name} are not rising positions among {n_images} images"
    n_rows, n_views = len(arrays["rows"]), len(arrays["view_rows"])
    wanted = {
        "features": (n_rows, arrays["features"].shape[-1] if arrays["features"].ndim else 0),
        "assign": (n_rows, n_clusters),
        "view_assign": (n_views, n_clusters),
        "view_assign_perturbed": (n_views, n_clusters),
    }
    for name, shape in wanted.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind != "f":
            return f"{name} has shape {arrays[name].shape} instead of {shape}"
        if not np.isfinite(arrays[name]).all():
            return f"{name} has values that are not finite"
    return None

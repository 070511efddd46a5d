"""Where the map puts images: their features laid out on a plane.

van der Maaten and Hinton, Visualizing data using t-SNE, 2008.

Shapes: n images, D features.
"""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dcdc.report.facts import RunSample
from dcdc.runtime.atomic_files import write_arrays
from dcdc.stored import files
from dcdc.stored.reading import DamagedFileError

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

T_SNE, PCA = "t-SNE", "PCA"
Layouts = dict[str, NDArray[np.float32]]
"""By name of the method: n x 2."""
Places = Callable[[NDArray[np.float32], NDArray[np.float32], float, int], NDArray[np.float32]]
"""t-SNE by other means than scikit-learn's: of points (n x D), a start (n x 2), a perplexity and a
number of steps."""

_VERSION = 1  # of what is kept beside a run: another layout of the same features is another version
_DIMENSIONS = 50  # enough for neighbours, and t-SNE takes as long as there are dimensions
_PERPLEXITY = 30
_STEPS = 500  # 5,000 images in some 20 s on one core, where the usual 1,000 take 33 s
_LAST_DIGIT = np.finfo(np.float16).eps  # of rows of length 1; nearer ones are the same, as kept
_FEWEST = 5  # images; t-SNE has nothing to say of fewer
_GRID = (
    4095  # the map's coordinates are whole numbers up to here: a tenth of the bytes, no less seen
)
T = TypeVar("T")


def lay_out(features: NDArray[np.float32], seed: int, t_sne: Places | None = None) -> Layouts:
    """The same on one machine for the same features and seed.

    t-SNE is left out where there are too few images or they are all alike.
    """
    # Threads add up in any order, and t-SNE makes much of the last digit.
    with threadpool_limits(1):
        reduced = _principal(_of_unit_length(features))
        if np.linalg.norm(reduced, axis=1).max() <= _LAST_DIGIT:
            reduced[:] = 0
        plane = np.zeros((len(reduced), 2), np.float32)
        plane[:, : reduced.shape[1]] = reduced[:, :2]
        layouts = {PCA: plane}
        if len(reduced) >= _FEWEST and reduced.any():
            layouts = {T_SNE: _t_sne(reduced, plane, seed, t_sne)} | layouts
    return layouts


def layout_of(
    folder: "RunFolder", sample: RunSample, seed: int, t_sne: Places | None = None
) -> Callable[[], Layouts]:
    """The layout of a run's sample, from `map.npz` unless the sample is another by now: then it is
    made beside what the caller goes on with, until it is asked for."""
    kept = kept_layout(folder, sample, seed)
    if kept is not None:
        return lambda: kept
    laid_out = beside(partial(lay_out, sample.features, seed, t_sne))

    def layouts() -> Layouts:
        found = laid_out()
        digest = np.array(_digest(sample, seed))
        write_arrays(folder.map_file, {"rows": sample.rows, **found, "digest": digest})
        return found

    return layouts


def kept_layout(folder: "RunFolder", sample: RunSample, seed: int) -> Layouts | None:
    """From `map.npz`; None where there is none, or it is damaged or of another sample."""
    try:
        kept = files.MAP.read(folder.map_file, n=len(sample.rows))
    except DamagedFileError:
        return None
    if kept["digest"].tolist() != _digest(sample, seed):
        return None
    return {name: kept[name] for name in (T_SNE, PCA) if name in kept}


def _digest(sample: RunSample, seed: int) -> str:
    parts = (f"{_VERSION}/{seed}/{sample.features.shape}".encode(), sample.rows, sample.features)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _of_unit_length(features: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = features.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0))


def _principal(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """n x at most 50: along the directions of most variance, which are the heaviest first."""
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :_DIMENSIONS]
    # A direction may point either way: the largest part of each points up.
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    reduced = centred @ directions
    reduced[np.abs(reduced) < 1e-9] = 0  # of rows of length 1: rounding, no difference
    return np.asarray(reduced, np.float32)


def _t_sne(
    reduced: NDArray[np.float32], plane: NDArray[np.float32], seed: int, t_sne: Places | None
) -> NDArray[np.float32]:
    perplexity = min(_PERPLEXITY, (len(reduced) - 1) / 3)
    start = plane / plane[:, 0].std() * 1e-4  # what init="pca" does, for one dimension too
    if t_sne is not None:
        return t_sne(reduced, start, perplexity, _STEPS)
    from sklearn.manifold import TSNE

    method = TSNE(
        perplexity=perplexity,
        init=start,
        max_iter=_STEPS,
        random_state=seed % 2**32,
        n_jobs=1,
    )
    return np.asarray(method.fit_transform(reduced), np.float32)


def on_grid(layout: NDArray[np.float32]) -> NDArray[np.int64]:
    """Into the square of the grid; both axes keep their proportion."""
    finite = np.nan_to_num(layout.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = finite.min(axis=0), finite.max(axis=0)
    spread = float((high - low).max()) or 1.0
    centred = (finite - (low + high) / 2) / spread + 0.5
    return np.asarray(np.rint(centred * _GRID), dtype=np.int64)


def beside(compute: Callable[[], T]) -> Callable[[], T]:
    """Starts at once; what comes back waits for the result, or raises what was raised.

    Neither Ctrl-C nor the end of the process waits for it, as they would for a pool's threads.
    """
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(compute())
        except BaseException as error:
            found.set_exception(error)

    Thread(target=run, name="beside", daemon=True).start()
    return found.result

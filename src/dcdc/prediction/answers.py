"""A stream of images -> rows of a table, a block at a time.

Shapes: R rows read of a source, N of them kept, D features.
"""

import hashlib
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pyarrow as pa

from dcdc.data import Skipped
from dcdc.data.decode import quiet_pillow
from dcdc.data.decoded import check_on_bad
from dcdc.data.image_stream import ImageStream, open_stream, open_vector_stream
from dcdc.data.row_cache import Block
from dcdc.data.sources import Given
from dcdc.engine.assignment import Assigned
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError, no_meaning
from dcdc.prediction.answered import LEFT_OUT, Answered, packed, unpacked
from dcdc.runtime.device import cpu_threads
from dcdc.runtime.processes import ALONE, Processes

_CHUNKS_A_TURN = 4  # of each process; at its end some rows may be decoded for nothing


def images_for(
    model: TrainedModel,
    source: Given,
    *,
    target: str | None = None,
    column: str | None = None,
    on_bad: str = "refuse",
) -> ImageStream:
    """Any source of what the model takes: images, brought to its size and channels as they are
    read, or feature vectors, which `column` and `on_bad` are for."""
    check_on_bad(on_bad)
    model.require_own_kind(source, column)
    if model.takes_vectors:
        assert isinstance(source, str | Path)
        width = model.network.n_features
        return open_vector_stream(
            source, n_features=width, target=target, column=column, on_bad=on_bad
        )
    if column is not None:
        raise no_meaning("column", column, f"{source}, which holds no feature vectors")
    channels = model.network.in_channels
    return open_stream(source, size=model.size, channels=channels, target=target)


def predict_rows(
    model: TrainedModel,
    images: ImageStream,
    *,
    on_bad: str = "refuse",
    on_skip: Callable[[Skipped], None] = lambda _: None,
    processes: Processes = ALONE,
    outliers: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """Name, cluster, confidence and the rest of every image, some hundred at a time."""
    check_on_bad(on_bad)
    answers = Answers(model, images, processes, outliers=outliers)
    with answers.computing():
        for answered in answers.from_row(0):
            if answered.skipped and on_bad == "refuse":
                raise unreadable(images, *answered.skipped[0])
            for row, why in answered.skipped:
                on_skip(Skipped(images.names[row], why))
            yield answered.rows


def help_to_answer(
    model: TrainedModel,
    images: ImageStream,
    processes: Processes,
    *,
    outliers: bool | None = None,
) -> None:
    """What a process does meanwhile that is not the first."""
    answers = Answers(model, images, processes, outliers=outliers)
    with answers.computing():
        for _ in answers.from_row(0):
            pass


def unreadable(images: ImageStream, row: int, why: str) -> InputError:
    return InputError(
        f"cannot read image {images.names[row]} in {images.where}: {why}",
        remedy=("repair or remove it", "use {on_bad=skip}"),
    )


class Answers:
    """A model's answers for a stream; what the out-of-distribution score needs is read once."""

    def __init__(
        self,
        model: TrainedModel,
        images: ImageStream,
        processes: Processes = ALONE,
        *,
        outliers: bool | None = None,
    ) -> None:
        """`outliers`: whether out-of-distribution images belong to no cluster; None: where the run
        looked for such."""
        self.outliers = model.finds_outliers if outliers is None else outliers
        self.processes = processes
        self.model = model
        self.images = images
        self.out_of_distribution = model.out_of_distribution
        self.schema = _schema(with_targets=images.targets is not None, named=bool(model.names))

    def computing(self) -> AbstractContextManager[None]:
        """On as many threads as the model was trained with."""
        config = self.model.config or {}
        return cpu_threads(config.get("train", {}).get("threads", 0))

    def fingerprint(self) -> str:
        """Of everything about the model that a row depends on."""
        digest = hashlib.sha256()
        told = (self.model.config, dict(self.model.names), self.model.device.type, self.outliers)
        digest.update(json.dumps(told, sort_keys=True, default=str).encode())
        for name, tensor in sorted(self.model.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
        if self.out_of_distribution is not None:
            # What is computed of them has last digits of this processor, and of so many threads.
            digest.update(np.ascontiguousarray(self.model.training_features()).data)
        return digest.hexdigest()

    def from_row(self, start: int) -> Generator[Answered, None, None]:
        """The same blocks, and so the same numbers, from any block's end on.

        Of several processes all call this, and those but the first need not know where to begin.
        """
        if self.processes.joined:
            yield from self._by_all(start)
            return
        for block in self.images.blocks(start, self.model.chunk):
            yield self._answer(block, start)
            start += block.n_read

    def dismiss(self) -> None:
        """Tells the other processes that no row is left to answer."""
        for _ in self.from_row(len(self.images)):
            raise AssertionError("beyond the last row")

    def _by_all(self, start: int) -> Iterator[Answered]:
        """Each process takes its turn of the rows, and everyone hears everything in order."""
        processes, turn = self.processes, _CHUNKS_A_TURN * self.model.chunk
        start = processes.broadcast_value(lambda: start)
        for first in range(start, len(self.images), turn * processes.size):
            begin = first + processes.rank * turn
            own = b"".join(packed(found) for found in self._of_rows(begin, begin + turn))
            for content in processes.all_gather_bytes(own):
                yield from unpacked(content, self.schema)

    def _of_rows(self, begin: int, end: int) -> Iterator[Answered]:
        end = min(end, len(self.images))
        if begin >= end:
            return
        with quiet_pillow():
            for block in self.images.read(begin, self.model.chunk):
                cut = _first_rows(block, begin, end - begin)
                yield self._answer(cut, begin)
                begin += cut.n_read
                if begin >= end:
                    return

    def _answer(self, block: Block, start: int) -> Answered:
        left_out = {row for row, _ in block.skipped}
        kept = [row for row in range(start, start + block.n_read) if row not in left_out]
        clusters = np.full(block.n_read, LEFT_OUT, np.int32)
        if not kept:
            empty = pa.RecordBatch.from_pylist([], self.schema)
            features = np.empty((0, self.model.network.n_features), np.float32)
            return Answered(empty, features, clusters, block.skipped)
        features, assigned = self.model.look_at_rows(block.pixels)
        known = self.out_of_distribution
        score = None if known is None else known.score(features)
        if self.outliers and score is not None:
            assigned = Assigned(assigned.probabilities, score > 1)
        found = assigned.assignments
        # A folder of their own, after those of the clusters.
        clusters[np.array(kept) - start] = np.where(found < 0, self.model.n_clusters, found)
        runner_up, runner_up_confidence = assigned.runner_up()
        nothing = [None] * len(kept)
        columns = {
            "name": [self.images.names[row] for row in kept],
            "cluster": found,
            "confidence": assigned.confidence,
            "target": self._targets(kept),
            "runner_up": runner_up,
            "runner_up_confidence": runner_up_confidence,
            "out_of_distribution": nothing if score is None else score > 1,
            "out_of_distribution_score": nothing if score is None else score,
            "cluster_name": [self.model.names.get(cluster) for cluster in found.tolist()],
        }
        arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return Answered(rows, features, clusters, block.skipped)

    def _targets(self, rows: list[int]) -> list[str]:
        if self.images.targets is None:
            return []
        return [self.images.class_names[code] for code in self.images.targets[rows].tolist()]


def _first_rows(block: Block, start: int, n_rows: int) -> Block:
    if block.n_read <= n_rows:
        return block
    skipped = tuple(each for each in block.skipped if each[0] < start + n_rows)
    return Block(block.pixels[: n_rows - len(skipped)], n_rows, skipped)


def _schema(*, with_targets: bool, named: bool) -> pa.Schema:
    fields = [("name", pa.string()), ("cluster", pa.int32()), ("confidence", pa.float32())]
    if with_targets:
        fields.append(("target", pa.string()))
    fields += [("runner_up", pa.int32()), ("runner_up_confidence", pa.float32())]
    fields += [("out_of_distribution", pa.bool_()), ("out_of_distribution_score", pa.float32())]
    if named:
        fields.append(("cluster_name", pa.string()))
    return pa.schema(fields)

"""The run folder: the unit of everything that lasts, and the names of what lies in it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dcdc.config.keys import flatten
from dcdc.engine import model_files
from dcdc.engine.checkpoints import CHECKPOINTS, STATE, TENSORS
from dcdc.engine.cluster_names import read_names, write_names
from dcdc.engine.edits import Edits, RunAnswers, read_edits, write_edits
from dcdc.engine.history import HISTORY, read_history
from dcdc.engine.taught import Taught, read_taught, write_taught
from dcdc.errors import InputError
from dcdc.metrics.hierarchy import Hierarchy, Join
from dcdc.runtime.atomic_files import atomic_file, remove_leftovers, write_arrays, write_text
from dcdc.runtime.csv_text import csv_lines
from dcdc.runtime.folder_contents import Contents
from dcdc.runtime.folder_lock import locked_folder
from dcdc.stored import files
from dcdc.stored.reading import read_bytes
from dcdc.stored.schema import Unfit
from dcdc.stored.tables import sealed_table

if TYPE_CHECKING:
    from torch import Tensor, nn

_JOB = "job"
_SEARCH = "search"
_TRAINING = (f"{CHECKPOINTS}/epoch-*/{TENSORS}", f"{CHECKPOINTS}/epoch-*/{STATE}", HISTORY)
_OF_SEARCH = Contents((*_TRAINING, files.SEARCH.name))
"""The first epochs of a run whose number of clusters is not settled yet."""
RUN_FOLDER = Contents(
    (
        # What a half-removed run must not be taken for goes first: it has no answers, then no
        # checkpoint to go on from. While there is a config, the folder is a run.
        *("assignments.parquet", model_files.WEIGHTS, model_files.METRICS, model_files.CARD),
        *("sample.npz", "features.npz", model_files.REFERENCE, "map.npz", model_files.NAMES),
        *("edits.json", "report.html", "figures/*.png", "figures/*.svg", *model_files.EXPORTS),
        *("skipped.csv", files.NUMBER.name, files.HIERARCHY.name, files.TAUGHT.name),
        *("events/events.out.tfevents.*", f"{model_files.BACKBONE}/*"),
        *_TRAINING,
        *(f"{_SEARCH}/{pattern}" for pattern in _OF_SEARCH.patterns),
        *(_JOB, model_files.CONFIG),
    )
)
_NOT_BEGUN = Contents((_JOB, files.TAUGHT.name, model_files.NAMES))
"""What a start that was killed before its first settings may have left."""
_ELSEWHERE = "choose another by {run}"
_LONGEST_JOB = 4096


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / model_files.CONFIG
        self.history_file = path / HISTORY
        self.model_file = path / model_files.WEIGHTS
        self.assignments_file = path / files.ASSIGNMENTS.name
        self.metrics_file = path / model_files.METRICS
        self.names_file = path / model_files.NAMES
        self.card_file = path / model_files.CARD
        self.sample_file = path / files.SAMPLE.name
        self.features_file = path / files.FEATURES.name
        self.reference_file = path / model_files.REFERENCE
        self.map_file = path / files.MAP.name
        self.edits_file = path / files.EDITS.name
        self.report_file = path / "report.html"
        self.skipped_file = path / "skipped.csv"
        self.number_file = path / files.NUMBER.name
        self.hierarchy_file = path / files.HIERARCHY.name
        self.taught_file = path / files.TAUGHT.name
        self.search = path / _SEARCH
        self.figures = path / "figures"
        self.job_file = path / _JOB
        self.backbone = path / model_files.BACKBONE
        self.is_new = False
        """Whether nothing of its run was written yet."""
        self._may_replace, self._job = False, ""

    @classmethod
    def create(cls, path: Path, *, overwrite: bool = False, job: str | None = None) -> "RunFolder":
        """For a run that is to begin, perhaps in place of another; what is no run is refused.

        Nothing is written before `begin`: a start that is refused leaves the older run as it is.
        `job`: the name under which torchrun started it."""
        try:
            str(path).encode()  # writers of tables and weights take no other names
        except UnicodeEncodeError:
            raise InputError(f"the name of {path} is not UTF-8", remedy=_ELSEWHERE) from None
        folder = cls(path)
        folder.is_new, folder._may_replace, folder._job = True, overwrite, job or ""
        folder._require_place()
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """One that is there; nothing in it is changed."""
        folder = cls(path)
        if folder.config_file.is_file():
            return folder
        if path.is_dir() and any(path.iterdir()) and _is_as_new(path):
            raise InputError(
                f"{path} is not a run folder yet: its first start was stopped too early",
                remedy="start it again without {resume}",
            )
        raise InputError(f"{path} is not a run folder (it has no {folder.config_file.name})")

    @property
    def is_saved_model(self) -> bool:
        """Whether it is of `model.save`, which leaves nothing of the training."""
        return self.model_file.exists() and not self.history_file.exists()

    def require_training(self) -> None:
        """Refuses what has no training to go on with."""
        if self.is_saved_model:
            raise InputError(
                f"{self.path} is a saved model's folder, which has no training to go on with",
                remedy=("predict with it", "give the run that it was saved from by {run}"),
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone among all that write here; a process that is at work here already is named."""
        with locked_folder(self.path, (_ELSEWHERE,)) as is_outermost:
            if is_outermost:
                for folder in (self.path, *map(self.path.joinpath, RUN_FOLDER.folders())):
                    if folder.is_dir() and not folder.is_symlink():
                        remove_leftovers(folder)
            yield

    def begin(self, config: dict[str, Any], taught: Taught | None = None) -> None:
        """In `writing`, when nothing can refuse the run any more: what it replaces goes. `taught`
        is what the run is to learn, without which it could not go on."""
        if self.is_new:
            self._require_place()
            if self._may_replace:
                RUN_FOLDER.remove(self.path)
            if self._job:
                write_text(self.job_file, self._job + "\n")
        self.is_new = False
        if taught is not None:
            write_taught(self.taught_file, taught)
            if any(taught.names):
                self.write_names({n: name for n, name in enumerate(taught.names) if name})
        self.write_config(config)

    def _require_place(self) -> None:
        path = self.path
        if not path.exists() or (path.is_dir() and _is_as_new(path)):
            return
        if not self._may_replace:
            ways = ("replace it by {overwrite}", _ELSEWHERE)
            if self.is_saved_model:
                raise InputError(f"{path} holds a saved model", remedy=ways)
            raise InputError(
                f"run folder {path} exists", remedy=("go on with it by {resume}", *ways)
            )
        if not model_files.is_own_config(self.config_file):
            raise InputError(
                f"{path} is not a run folder, so it is not overwritten", remedy=_ELSEWHERE
            )
        stranger = next(RUN_FOLDER.strangers(path), None)
        if stranger is not None:
            raise InputError(
                f"{path} holds {stranger.relative_to(path)}, which no run wrote, so it is not "
                "overwritten",
                remedy=("move it away", _ELSEWHERE),
            )

    def write_config(self, config: dict[str, Any]) -> None:
        model_files.write_config(self.config_file, config)

    def read_config(self) -> dict[str, Any]:
        return model_files.read_config(self.config_file)

    def read_flat_config(self) -> dict[str, Any]:
        """Every value by its `section.key`."""
        return flatten(self.read_config())

    def is_of_job(self, job: str | None) -> bool:
        if job is None or not self.job_file.is_file():
            return False
        try:
            return read_bytes(self.job_file, _LONGEST_JOB).strip() == job.encode()
        except (OSError, Unfit):
            return False

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        model_files.write_metrics(self.metrics_file, metrics)

    def read_metrics(self) -> dict[str, Any]:
        return files.METRICS.read(self.metrics_file)

    def read_history(self) -> list[dict[str, Any]]:
        return read_history(self.history_file)

    def write_model(self, network: "nn.Module", metadata: dict[str, Any]) -> None:
        model_files.write_weights(self.model_file, network, metadata)

    def read_model(self, config: Mapping[str, Any]) -> "dict[str, Tensor]":
        """`config`: the run's own settings, which weights of other ones do not fit."""
        if not self.model_file.exists():
            raise InputError(
                f"{self.path} has no model yet",
                remedy=("finish it by dcdc fit {resume}", f"add its {self.model_file.name}"),
            )
        return model_files.read_weights(self.model_file, config)

    def write_card(self, card: str) -> None:
        write_text(self.card_file, card)

    def write_assignments(
        self,
        names: Sequence[str],
        assignments: np.ndarray,
        confidence: np.ndarray,
        targets: Sequence[str] | None,
        runner_up: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """name, cluster, confidence and, if known, target and the second-best cluster with its own
        confidence."""
        columns: dict[str, pa.Array] = {
            "name": pa.array(list(names), pa.string()),
            "cluster": pa.array(assignments, pa.int32()),
            "confidence": pa.array(confidence, pa.float32()),
        }
        if targets is not None:
            columns["target"] = pa.array(list(targets), pa.string())
        if runner_up is not None:
            columns["runner_up"] = pa.array(runner_up[0], pa.int32())
            columns["runner_up_confidence"] = pa.array(runner_up[1], pa.float32())
        with atomic_file(self.assignments_file) as temporary:
            pq.write_table(sealed_table(pa.table(columns)), temporary, compression="zstd")

    def read_assignments(self) -> pa.Table:
        if not self.assignments_file.exists():
            if self.is_saved_model:
                raise InputError(
                    f"{self.path} is a saved model's folder, which keeps no assignments: give the "
                    "run that it was saved from, or images to assign to dcdc predict"
                )
            raise InputError(
                f"{self.path} has no assignments yet", remedy="finish it by dcdc fit {resume}"
            )
        return files.ASSIGNMENTS.read(self.assignments_file)

    def read_answers(self) -> RunAnswers:
        """What corrections are of."""
        table = self.read_assignments()
        clusters = table["cluster"].to_numpy()
        n_clusters = int(self.read_metrics()["n_clusters"])
        return RunAnswers(table["name"].to_pylist(), clusters, n_clusters)

    def write_sample(self, arrays: Mapping[str, np.ndarray]) -> None:
        write_arrays(self.sample_file, arrays)

    def read_sample(self, **sides: int) -> dict[str, np.ndarray] | None:
        """None where a run has none, as runs of earlier versions. `sides`: those of its arrays that
        are known, n, D, K or v."""
        if not self.sample_file.exists():
            return None
        return files.SAMPLE.read(self.sample_file, **sides)

    def write_features(self, features: np.ndarray | None) -> None:
        """Of every image; None: the sample has them, or they are too many to keep."""
        if features is None:
            self.features_file.unlink(missing_ok=True)
        else:
            write_arrays(self.features_file, {"features": features}, packed=False)

    def read_features(self, n_at_once: int, n_images: int) -> Iterator[np.ndarray] | None:
        """N x D, a few rows at a time; None where they were not kept."""
        if not self.features_file.exists():
            return None
        return files.FEATURES.blocks(self.features_file, n_at_once, N=n_images)

    def read_training_features(self, n_features: int) -> np.ndarray | None:
        """n x D of some training images: a model folder's own file, or from a run's sample."""
        if self.reference_file.exists():
            return files.REFERENCE.read(self.reference_file, D=n_features)["features"]
        sample = self.read_sample(D=n_features)
        if sample is None:
            return None
        features = sample["features"]
        return features[sample["vouch"] == 1] if "vouch" in sample else features

    def write_skipped(self, skipped: Sequence[tuple[str, str]]) -> None:
        write_text(self.skipped_file, skipped_table(skipped))

    def begin_search(self, config: dict[str, Any], search: Mapping[str, int]) -> None:
        """For the number of clusters, which `config` does not have yet. Its epochs are in a folder
        of their own: the run takes them up when the number is known."""
        self.begin(config)
        self.search.mkdir(exist_ok=True)
        write_text(self.search / files.SEARCH.name, files.SEARCH.text(search))

    def read_search(self) -> dict[str, Any]:
        """Of one that is under way."""
        return files.SEARCH.read(self.search / files.SEARCH.name)

    def end_search(self) -> None:
        if self.search.is_dir() and not self.search.is_symlink():
            _OF_SEARCH.remove(self.search)
            with suppress(OSError):  # something of somebody else is in it
                self.search.rmdir()

    def write_number(self, number: Mapping[str, Any]) -> None:
        write_text(self.number_file, files.NUMBER.text(number))

    def read_number(self) -> dict[str, Any] | None:
        """How the images settled how many clusters there are; None where a person said it."""
        return files.NUMBER.read(self.number_file) if self.number_file.exists() else None

    def write_hierarchy(self, hierarchy: Hierarchy) -> None:
        write_text(self.hierarchy_file, files.HIERARCHY.text(asdict(hierarchy)))

    def read_hierarchy(self) -> Hierarchy | None:
        """None where a run has none, as runs of earlier versions."""
        if not self.hierarchy_file.exists():
            return None
        found = files.HIERARCHY.read(self.hierarchy_file)
        joins = tuple(Join(**join) for join in found["joins"])
        hierarchy = Hierarchy(found["n_clusters"], joins)
        if not hierarchy.is_whole:
            error = Unfit("joins", "do not join every cluster once")
            raise files.HIERARCHY.damaged(self.hierarchy_file, error)
        return hierarchy

    def write_names(self, names: Mapping[int, str]) -> None:
        write_names(self.names_file, names)

    def read_names(self, file: Path | None = None) -> dict[int, str]:
        """What people called the clusters, from another file or the run's; empty if nobody did."""
        if file is None and not self.names_file.exists():
            return {}
        n_clusters = self.read_config().get("n_clusters") or 0
        return read_names(file or self.names_file, int(n_clusters))

    def read_taught(self) -> Taught | None:
        """What people had taught the run; None where nobody did."""
        return read_taught(self.taught_file) if self.taught_file.exists() else None

    def write_edits(self, edits: Edits) -> None:
        write_edits(self.edits_file, edits)

    def read_edits(self, answers: RunAnswers) -> Edits:
        """What people corrected of these answers; none if nobody did."""
        if not self.edits_file.exists():
            return Edits(answers.digest)
        return read_edits(self.edits_file, answers)


def _is_as_new(path: Path) -> bool:
    """Empty, or with what a start left that was killed before its first settings."""
    return next(_NOT_BEGUN.strangers(path), None) is None


def skipped_table(skipped: Iterable[tuple[str, str]]) -> str:
    """Of names and reasons, as CSV."""
    return csv_lines([("name", "reason"), *skipped])


def refined_name(run: Path) -> Path:
    """`runs/photos-refined` of `runs/photos`, then `runs/photos-refined-2`, whatever is free."""
    path = run if run.name else run.resolve()
    first = f"{re.sub(r'-refined(-[0-9]+)?$', '', path.name)}-refined"
    names = chain([first], (f"{first}-{number}" for number in count(2)))
    return next(place for place in map(path.with_name, names) if not place.exists())

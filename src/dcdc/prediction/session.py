"""predict_to_file: every image of a stream answered into files that appear whole, or gone on with.

Shapes: N rows kept, D features.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcdc.data import Skipped
from dcdc.data.decoded import check_on_bad
from dcdc.data.image_stream import ImageStream
from dcdc.engine.interruption import Interruption
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.prediction.answered import Answered
from dcdc.prediction.answers import Answers, unreadable
from dcdc.prediction.formats import FORMATS, Format, npy_header
from dcdc.prediction.sorting import Sorted, Sorting, check_sorting, cluster_folders, sort_files
from dcdc.prediction.targets import check_names, done_path, refuse_existing, skipped_path, work_path
from dcdc.prediction.work_folder import SKIPPED, TABLE, WorkFolder, opened_work, remove_done
from dcdc.run_folder import skipped_table
from dcdc.runtime.atomic_files import place, write_text
from dcdc.runtime.processes import ALONE, Processes

Progress = Callable[[str, int, int], None]
"""(what, done, total)"""


@dataclass(frozen=True)
class Predicted:
    n_images: int | None
    """Rows of the table; None where an earlier start had done all but clear up."""
    n_out_of_distribution: int | None
    """None where the model keeps nothing of its training images to compare with."""
    skipped: tuple[Skipped, ...]
    skipped_file: Path | None
    sorted: Sorted | None


class PredictionStopped(Exception):  # noqa: N818 - nothing went wrong
    """A signal asked to stop; what is done is kept."""

    def __init__(self, signal: str, done: str) -> None:
        super().__init__(f"stopped by {signal}: {done}; the same command goes on from there")
        self.signal = signal


def predict_to_file(
    model: TrainedModel,
    images: ImageStream,
    out: Path,
    *,
    features: Path | None = None,
    sorting: Sorting | None = None,
    on_bad: str = "refuse",
    outliers: bool | None = None,
    progress: Progress = lambda *_: None,
    on_kept: Callable[[int], None] = lambda _: None,
    processes: Processes = ALONE,
) -> Predicted:
    """Rows to `out` (.csv, .parquet, .jsonl) and features to `features` (.npy), line for line.

    Until all is done, the work lies in `OUT.partial`, and a call with the same model and images
    goes on with it; `on_kept` then hears how many rows there are. `outliers` as `Answers` has it.
    Of several processes the first calls this, and the others `help_to_answer`.
    """
    check_on_bad(on_bad)
    if done_path(out).exists() and out.exists():
        remove_done(done_path(out))
        return Predicted(None, None, (), None, None)
    job = _Job(model, images, out, features, sorting, on_bad)
    job.check()
    answers = Answers(model, images, processes, outliers=outliers)
    heads = {"rows": job.format.head(answers.schema), "clusters": b""}
    if features is not None:
        heads["features"] = npy_header(0, model.network.n_features)
    meaning = {
        "another model": answers.fingerprint(),
        "other images or another target": images.fingerprint,
        "another choice of features": str(features is not None),
    }
    with (
        _writing(out),
        opened_work(work_path(out), heads, meaning) as work,
        Interruption() as interruption,
    ):
        for folder in job.other_folders:  # found before minutes go into predicting
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder} is a file: give a folder")
            folder.mkdir(parents=True, exist_ok=True)
        if not work.is_whole:
            job.refuse_existing()
            if work.n_read:
                on_kept(work.n_read)
            job.refuse_bad(work.skipped)
            with answers.computing():
                _answer_the_rest(job, answers, work, interruption, progress)
        else:
            answers.dismiss()
        return _publish(job, answers, work, interruption, progress)


@dataclass(frozen=True)
class _Job:
    model: TrainedModel
    images: ImageStream
    out: Path
    features: Path | None
    sorting: Sorting | None
    on_bad: str

    @property
    def format(self) -> Format:
        return FORMATS[self.out.suffix]

    @property
    def folders(self) -> list[str]:
        n_clusters = self.model.n_clusters
        return cluster_folders(n_clusters, self.model.names)

    @property
    def other_folders(self) -> list[Path]:
        """Besides that of `out`."""
        features = [] if self.features is None else [self.features.parent]
        return features if self.sorting is None else [*features, self.sorting.folder]

    def check(self) -> None:
        """What can be refused without reading an image."""
        check_names(self.out, self.features)
        source = Path(self.images.where)
        inside = source.is_dir() and self.out.resolve().is_relative_to(source.resolve())
        if inside and self.out.suffix == ".parquet":
            raise InputError(
                f"{self.out} would be read as images of {source} next time",
                remedy="choose an {out} outside it",
            )
        if self.sorting is not None:
            check_sorting(self.sorting, self.images, self.folders)

    def refuse_existing(self) -> None:
        refuse_existing(self.out, self.features)
        skipped = skipped_path(self.out)
        if self.on_bad == "skip" and skipped.exists():
            raise InputError(f"{skipped} exists", remedy=("move it away", "choose another {out}"))

    def refuse_bad(self, skipped: tuple[tuple[int, str], ...]) -> None:
        if skipped and self.on_bad == "refuse":
            raise unreadable(self.images, *skipped[0])


def _answer_the_rest(
    job: _Job,
    answers: Answers,
    work: WorkFolder,
    interruption: Interruption,
    progress: Progress,
) -> None:
    n_images = len(job.images)
    progress("predicting", work.n_read, n_images)
    with work.appending() as appender, closing(answers.from_row(work.n_read)) as some_answered:
        for answered in some_answered:
            job.refuse_bad(answered.skipped)
            told = answers.out_of_distribution is not None
            outside = answered.rows["out_of_distribution"].to_pylist() if told else []
            appender.append(
                _pieces(job, answered),
                n_read=len(answered.clusters),
                n_kept=answered.rows.num_rows,
                n_out_of_distribution=sum(outside),
                skipped=answered.skipped,
            )
            progress("predicting", work.n_read, n_images)
            if interruption.wanted and work.n_read < n_images:
                done = f"{work.n_read:,} of {n_images:,} images are kept in {work.path}"
                raise PredictionStopped(interruption.wanted, done)
    if not work.n_kept:
        row, why = work.skipped[0]
        work.keep(0)  # nothing of use: the folder goes when it is closed
        raise InputError(
            f"none of the {n_images} images in {job.images.where} can be read "
            f"({job.images.names[row]}: {why}): give good images"
        )
    work.finish()


def _pieces(job: _Job, answered: Answered) -> dict[str, bytes]:
    pieces = {"rows": job.format.piece(answered.rows), "clusters": answered.clusters.tobytes()}
    if job.features is not None:
        pieces["features"] = np.ascontiguousarray(answered.features, "<f4").tobytes()
    return pieces


def _publish(
    job: _Job,
    answers: Answers,
    work: WorkFolder,
    interruption: Interruption,
    progress: Progress,
) -> Predicted:
    """Each step finds what an earlier start has done of it; the table comes last."""
    ordered = None
    if job.sorting is not None:
        ordered = _sort(job, job.sorting, work, interruption, progress)
    if job.features is not None and work.part("features").exists():
        with work.part("features").open("r+b") as file:
            file.write(npy_header(work.n_kept, job.model.network.n_features))
        _place(work.part("features"), job.features)
    skipped = tuple(Skipped(job.images.names[row], why) for row, why in work.skipped)
    skipped_file = skipped_path(job.out) if skipped else None
    if skipped_file is not None:
        _place_text(work, skipped_table((each.name, each.reason) for each in skipped), skipped_file)
    if work.part("rows").exists() and not work.part(TABLE).exists():
        job.format.assemble(work.part("rows"), work.part(TABLE))
    if work.part(TABLE).exists():
        _place(work.part(TABLE), job.out)
    for wanted in (job.out, *(() if job.features is None else (job.features,))):
        if not wanted.exists():
            raise work.taken_away()
    n_out_of_distribution = work.n_out_of_distribution if answers.out_of_distribution else None
    predicted = Predicted(work.n_kept, n_out_of_distribution, skipped, skipped_file, ordered)
    work.remove_as(done_path(job.out))
    return predicted


def _sort(
    job: _Job,
    sorting: Sorting,
    work: WorkFolder,
    interruption: Interruption,
    progress: Progress,
) -> Sorted:
    def on_file(done: int, total: int) -> None:
        progress("sorting files", done, total)
        if interruption.wanted and done < total:
            raise PredictionStopped(interruption.wanted, f"{done:,} of {total:,} files are sorted")

    return sort_files(
        job.images,
        np.fromfile(work.part("clusters"), np.int32),
        job.folders,
        sorting,
        key=hashlib.sha256(bytes(job.out.resolve())).hexdigest()[:12],
        progress=on_file,
    )


def _place_text(work: WorkFolder, text: str, target: Path) -> None:
    """An earlier start may have placed the same."""
    if target.is_file() and target.read_bytes() == text.encode():
        return
    write_text(work.part(SKIPPED), text)
    _place(work.part(SKIPPED), target)


def _place(part: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        place(part, target)
    except FileExistsError:
        raise InputError(
            f"{target} has come to be meanwhile: move it away, and the same command goes on"
        ) from None


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or work_path(out)
        raise InputError(
            f"cannot write {out}: {error.strerror or error} ({where}); mend this, and the same "
            "command goes on with what is done"
        ) from None

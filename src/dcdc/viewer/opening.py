"""From a run folder and its source to a run that can be looked at; nothing in either is changed."""

import pyarrow as pa

from dcdc.data.load_data import Found, find_again
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError
from dcdc.report.facts import RunFacts, RunSample, read_facts, read_sample
from dcdc.report.map_layout import kept_layout
from dcdc.run_folder import RunFolder
from dcdc.stored.reading import DamagedFileError
from dcdc.viewer.corrections import Corrections
from dcdc.viewer.kept_features import kept_features
from dcdc.viewer.originals import Originals, originals_of
from dcdc.viewer.viewed_run import ViewedRun


def open_run(folder: RunFolder) -> ViewedRun:
    """Of a finished run; what of it cannot be shown stands in its notes."""
    facts = read_facts(folder)
    corrections = Corrections(folder, folder.read_answers())
    found, why = _source(facts)
    notes = [] if why is None else [why]
    originals: Originals | None = None
    if found is not None:
        originals, why = originals_of(found, facts.names)
        if why is not None:
            notes.append(f"{why}: names and numbers are shown, no images")
        elif originals is not None and originals.n_gone:
            notes.append(f"{originals.n_gone:,} images are no longer in the source")
    sample, why = _sample(folder)
    if why is not None:
        notes.append(why)
    layouts = None
    if sample is not None:
        layouts = kept_layout(folder, sample, int(facts.metrics["seed"]))
        if layouts is None:
            notes.append("There is no map yet: dcdc report makes it")
    vectors = found if isinstance(found, VectorSet) else None
    features = kept_features(folder, facts, sample, vectors)
    pa.default_memory_pool().release_unused()  # tables that were read, some 40 MB of 100,000 images
    return ViewedRun(
        facts, corrections, originals, notes, sample=sample, features=features, layouts=layouts
    )


def _source(facts: RunFacts) -> tuple[Found | None, str | None]:
    """As it lies there; or none, and why."""
    if not facts.source:
        return None, (
            "The run was given its images in Python and names no source: names and numbers are "
            "shown, no images"
        )
    try:
        config = facts.config
        return find_again(facts.source, config.get("data.target"), config.get("data.column")), None
    except InputError as error:
        return None, f"The source cannot be read, names and numbers are shown ({error})"


def _sample(folder: RunFolder) -> tuple[RunSample | None, str | None]:
    try:
        found = read_sample(folder)
    except DamagedFileError as error:
        return None, str(error)
    if found is None:
        return None, "The run has no sample of its features: dcdc report makes one"
    return found, None

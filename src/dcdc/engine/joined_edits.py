"""Edits that somebody else made of the same answers, put after one's own."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from dcdc.engine.cluster_names import tidy_name
from dcdc.engine.edits import Edit, Edits, RunAnswers, corrected


def joined(own: Edits, others: Edits, answers: RunAnswers, names: Mapping[int, str]) -> Edits:
    """What both begin with is taken once. A cluster that is new in `others` is new here too, with
    the next number that is free. `names`: those in force, which a name that is taken back leaves.

    Raises InputError for edits of other answers, and where one does not fit what is left."""
    corrected(others, answers)  # by themselves, in their own numbers
    pairs = zip(own.made, others.made, strict=False)
    n_shared = len(list(takewhile(lambda pair: _same(*pair), pairs)))
    n_then = corrected(replace(own, made=own.made[:n_shared]), answers).n_clusters
    n_now = corrected(own, answers).n_clusters
    called, more = dict(names), []
    for edit in others.made[n_shared:]:
        renumbered = _renumbered(edit, n_then, n_now - n_then)
        if renumbered["kind"] == "name":
            cluster = renumbered["cluster"]
            renumbered["before"] = called.get(cluster, "")
            called[cluster] = tidy_name(renumbered["name"], f"the name of cluster {cluster}")
        more.append(renumbered)
    found = replace(own, made=(*own.made, *more))
    corrected(found, answers)
    return found


def _same(one: Edit, other: Edit) -> bool:
    """Whatever was called how before."""
    return {**one, "before": ""} == {**other, "before": ""}


def _renumbered(edit: Edit, first_new: int, by: int) -> dict[str, Any]:
    def now(number: int) -> int:
        return number if number < first_new else number + by

    found = dict(edit)
    for key in ("cluster", "into", "to"):
        if key in found:
            found[key] = now(edit[key])
    if "clusters" in found:
        found["clusters"] = [now(number) for number in edit["clusters"]]
    return found

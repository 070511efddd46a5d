"""The campaign: a part of every family in the default suite, and each family whole."""

import os
from collections import Counter
from pathlib import Path

import pytest

from campaign.families import FAMILIES, Family
from campaign.table import row_of

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_PART = {"kills": 120, "two fits": 200, "readers": 200}
_USUAL_PART = 600
"""Each so-manieth input of a family."""
_TOO_LONG = ("growth",)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or not hasattr(os, "pidfd_open"),
    reason="processes are watched by what Linux tells of them",
)


def test_a_part_of_every_family_is_answered_cleanly():
    """One test, so that what is damaged is made by one process once."""
    faults, n = {}, 0
    for name, family in FAMILIES.items():
        if name not in _TOO_LONG:
            found = family.run(every=_PART.get(name, _USUAL_PART), few=True)
            faults |= {f"{name}/{case}": fault for case, fault in found.faults.items()}
            n += found.n
    assert not faults, "\n".join(f"{case}: {fault}" for case, fault in faults.items())
    assert n > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_whole_family_is_answered_cleanly_and_counted_on_the_page(name):
    family = FAMILIES[name]
    found = family.run()
    assert not found.faults, "\n".join(f"{case}: {why}" for case, why in found.faults.items())
    row = row_of(family, found)
    assert row in PAGE.read_text(encoding="utf-8"), (
        f"{PAGE.name} should read {row}: {_largest_groups(family)}"
    )


def _largest_groups(family: Family) -> list[tuple[str, int]]:
    """Of kills those of each verb: one of them has more than the page counts."""
    return Counter(each.name.split(":")[0] for each in family.cases()).most_common(30)


@pytest.mark.slow
def test_the_campaign_is_as_large_as_the_page_promises():
    numbers = {name: len(list(family.cases())) for name, family in FAMILIES.items()}
    inputs = sum(n for name, n in numbers.items() if FAMILIES[name].unit == "inputs")
    assert inputs >= 6000
    assert numbers["kills"] >= 600
    assert numbers["two fits"] >= 200
    assert numbers["readers"] >= 200

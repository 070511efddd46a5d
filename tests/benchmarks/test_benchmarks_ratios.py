import pytest

from baselines import floors, reference, stores
from baselines.floors import floor_name
from baselines.ratios import ratios
from dcdc.bench import perturbations
from dcdc.bench.timing import Measured, Row, Timing


def row(part, preset, name, ms, spread=1.0, copies=0, **details):
    timing = Timing(ms, ms / spread, ms * spread, 7, 3, 0.1)
    return Row(part, preset, name, Measured(timing, copies=copies, details=details))


OURS = row("steps", "digits", "a step", 2.0, spread=2, heads=["cluster_head"])
OTHER_HEAD = row("steps", "digits", "another", 500.0, heads=["over_clustering_head"])
LOADED = row("reference", "digits", reference.STEP_AND_LOADER, 24.0, spread=1.5)
ALONE = row("reference", "digits", reference.STEP_ALONE, 10.0)
CONVOLUTIONS = row("floors", "digits", floor_name("a step", floors.CONVOLUTIONS), 1.0)
ARITHMETIC = row("floors", "digits", floor_name("a step", floors.ARITHMETIC), 0.5)
OTHER_ARITHMETIC = row("floors", "digits", floor_name("another", floors.ARITHMETIC), 50.0)


def by_name(rows):
    return {(ratio.preset, ratio.name): ratio for ratio in ratios(rows)}


def test_the_cluster_heads_step_is_held_against_the_reference():
    found = by_name([OTHER_HEAD, OURS, LOADED, ALONE])
    assert {name: ratio.value for (_, name), ratio in found.items()} == {
        "reference with its loader / ours": 12,
        "reference without loading / ours": 5,
    }
    loaded = found["digits", "reference with its loader / ours"]
    assert (loaded.lowest, loaded.highest, loaded.n_blocks) == (4, 36, (7, 7))


def test_every_step_is_held_against_its_own_floors():
    found = by_name([OTHER_HEAD, OURS, CONVOLUTIONS, ARITHMETIC, OTHER_ARITHMETIC])
    assert {name: ratio.value for (_, name), ratio in found.items()} == {
        "a step / convolutions alone": 2,
        "a step / arithmetic at the matrix rate": 4,
        "another / arithmetic at the matrix rate": 10,
    }


def test_what_is_missing_or_not_possible_has_no_ratio():
    failed = Row("floors", "digits", CONVOLUTIONS.name, not_possible="no memory")
    assert [ratio.name for ratio in ratios([OURS, failed, ARITHMETIC])] == [
        "a step / arithmetic at the matrix rate"
    ]
    assert ratios([LOADED, ALONE, CONVOLUTIONS]) == []
    assert ratios([OTHER_HEAD, LOADED, ALONE, CONVOLUTIONS]) == []


def test_presets_are_not_mixed():
    assert ratios([OURS, row("floors", "cifar10-paper", ARITHMETIC.name, 1.0)]) == []


def test_copies_compare_whatever_their_number():
    small, large = perturbations.BATCH_SIZES
    rows = [
        row("perturbations", None, perturbations.trial_name(small, "eager"), 2.0, copies=200),
        row("perturbations", None, perturbations.trial_name(small, "captured"), 1.0, copies=200),
        row("perturbations", None, perturbations.trial_name(large, "eager"), 4.0, copies=4000),
        row("reference", perturbations.PRESET, reference.LOADER_ALONE, 12.0, copies=100),
        row("store", None, stores.RESIDENT, 1.0),
        row("store", None, stores.STREAMED, 3.0),
    ]
    values = {name: ratio.value for (_, name), ratio in by_name(rows).items()}
    assert values == pytest.approx(
        {
            f"copies of {small}: reference loader / eager": 12,
            f"copies of {small}: eager / captured": 2,
            f"copies of {large}: reference loader / eager": 120,
            "streamed / resident batch": 3,
        }
    )

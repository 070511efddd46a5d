"""Both parts on the CPU at tiny sizes, and cases that fail while others go on."""

from dataclasses import replace

import pytest
import torch

from dcdc.bench import PARTS, perturbations, session
from dcdc.bench.session import Session, measure
from dcdc.bench.steps import build_case, random_images
from dcdc.config import with_values
from dcdc.prepare.presets import preset


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(perturbations, "BATCH_SIZES", (2,))


def rows_of(*cases, parts=PARTS):
    announced = []
    on_cpu = Session(cases, parts, torch.device("cpu"), seconds=0.02)
    rows = list(measure(on_cpu, announced.append))
    return rows, announced


def test_the_parts_are_those_that_are_named():
    assert (*session.OF_PRESETS, *session.ALONE) == PARTS


def test_every_part_is_measured_with_its_n_and_spread(digits):
    rows, announced = rows_of(digits)
    assert {row.part for row in rows} == set(PARTS)
    assert len(announced) == len(rows) == 5
    for row in rows:
        if row.name.endswith("captured"):
            assert row.not_possible == "a graph needs CUDA, not cpu"
        else:
            assert row.not_possible is None, row
            assert row.measured.timing.n_blocks >= 2
            assert row.measured.timing.spread >= 1


def test_both_heads_in_turn_or_together(digits):
    (over, cluster, _), _ = rows_of(digits, parts=["steps"])
    assert over.measured.details["heads"] == ["over_clustering_head"]
    assert cluster.measured.details["heads"] == ["cluster_head"]
    joint = replace(digits, config=with_values(digits.config, {"heads.order": "joint"}))
    (row, _), _ = rows_of(joint, parts=["steps"])
    assert row.measured.details["heads"] == ["cluster_head", "over_clustering_head"]
    assert (row.measured.images, row.measured.copies) == (4, 12)


def test_every_phase_of_a_recipe_has_its_step_and_its_own_batch():
    values = {"train.device": "cpu"}
    settings = [
        "heads.batch_size=4",
        *("phases=contrast,heads,self_label", "heads.order=joint", "heads.neighbours=3"),
        *("network.backbone=small", "network.over_clusters=20", "heads.n_repeats=2"),
        *("contrast.batch_size=6", "self_label.batch_size=8"),
    ]
    rows, _ = rows_of(build_case("stl10", values, settings), parts=["steps"])
    assert [row.name for row in rows] == [
        "contrast step, contrast",
        "heads step, cluster head and over clustering head",
        "self label step, cluster head",
    ]
    # Two perturbed copies; the original and two of a neighbour; the original and one.
    counts = [(row.measured.images, row.measured.copies) for row in rows]
    assert counts == [(6, 12), (4, 12), (8, 16)]


def test_a_step_that_needs_what_its_phase_begins_with_has_it():
    """Labels of every image; features and neighbours."""
    settings = ["network.backbone=small", "discriminate.batch_size=6", "frozen_heads.batch_size=8"]
    rows, _ = rows_of(build_case("cifar10", {"train.device": "cpu"}, settings), parts=["steps"])
    assert [row.name for row in rows] == [
        "discriminate step, discriminate",
        "frozen heads step, cluster head",
        "self label step, cluster head",
    ]
    assert [row.not_possible for row in rows] == [None] * 3
    # Of stored features no copy is made.
    assert [row.measured.copies for row in rows] == [12, 0, 16]


def test_a_case_that_cannot_run_stops_no_other(digits):
    """Three channels for a network of one."""
    coloured = random_images(preset("cifar10-paper"))
    broken = replace(digits, preset="broken", image_set=coloured)
    rows, _ = rows_of(broken, digits, parts=["steps"])
    for row in rows:
        if row.preset == "digits":
            assert row.not_possible is None, row
        else:
            assert row.measured is None
            assert "channel" in row.not_possible


def test_threads_are_the_presets_and_come_back(digits, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dcdc.bench.steps.time_calls", lambda *_: seen.append(torch.get_num_threads())
    )
    before = torch.get_num_threads()
    two = replace(digits, config=with_values(digits.config, {"train.threads": 2}))
    rows_of(two, parts=["steps"])
    assert seen == [2, 2, 2]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("digits", (10_000, 8, 8, 1)),
        ("cifar10-paper", (10_000, 32, 32, 3)),
        ("stl10-paper", (2427, 96, 96, 3)),
    ],
)
def test_images_are_as_many_as_fit_and_of_the_presets_shape(monkeypatch, name, shape):
    monkeypatch.setattr("dcdc.bench.steps.has_gpu", lambda _: True)
    assert random_images(preset(name)).images.shape == shape


def test_a_cpu_has_fewer():
    config = with_values(preset("cifar10-paper"), {"train.device": "cpu"})
    assert random_images(config).n_images == 1_000


def test_there_are_enough_images_for_a_large_batch():
    case = build_case("digits", {"train.device": "cpu", "heads.batch_size": 5_000}, [])
    assert case.image_set.n_images == 10_000

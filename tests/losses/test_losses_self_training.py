"""DEC's parts against slow loops, and what sharpening must do."""

import math

import pytest
import torch

from dcdc.losses import sharpened_target, student_assignment, target_divergence


def random_codes(n_images=6, n_code=3, n_clusters=4):
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: torch.randn(n, n_code, generator=generator, dtype=torch.float64)  # noqa: E731
    return draw(n_images), draw(n_clusters)


def slow_assignment(codes, centres):
    rows = []
    for code in codes.tolist():
        closeness = []
        for centre in centres.tolist():
            squared = sum((a - b) ** 2 for a, b in zip(code, centre, strict=True))
            closeness.append(1 / (1 + squared))
        rows.append([value / sum(closeness) for value in closeness])
    return torch.tensor(rows, dtype=torch.float64)


def slow_target(assign):
    sizes = [sum(row[k] for row in assign.tolist()) for k in range(assign.shape[1])]
    rows = []
    for row in assign.tolist():
        weights = [value**2 / size for value, size in zip(row, sizes, strict=True)]
        rows.append([weight / sum(weights) for weight in weights])
    return torch.tensor(rows, dtype=torch.float64)


def test_as_the_slow_loops_have_it():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres)
    torch.testing.assert_close(assign, slow_assignment(codes, centres))
    target = sharpened_target(assign)
    torch.testing.assert_close(target, slow_target(assign))
    slow = sum(
        p * math.log(p / q)
        for p_row, q_row in zip(target.tolist(), assign.tolist(), strict=True)
        for p, q in zip(p_row, q_row, strict=True)
    ) / len(codes)
    assert target_divergence(target, assign).item() == pytest.approx(slow, rel=1e-12)


def test_the_nearest_centre_has_the_largest_share_and_moving_all_changes_nothing():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres)
    assert torch.equal(assign.argmax(1), torch.cdist(codes, centres).argmin(1))
    torch.testing.assert_close(assign.sum(1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(student_assignment(codes + 5, centres + 5), assign)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(student_assignment(codes, centres[order]), assign[:, order])


def test_targets_of_even_clusters_are_surer_than_what_they_come_from():
    assign = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    target = sharpened_target(assign)
    assert (target.max(1).values > assign.max(1).values).all()
    torch.testing.assert_close(target.sum(1), torch.ones(2))


def test_a_large_cluster_does_not_grow():
    assign = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.55, 0.45]])
    assert sharpened_target(assign)[3].argmax() == 1


def test_the_target_teaches_and_is_not_taught():
    codes, centres = random_codes()
    assign = student_assignment(codes, centres.requires_grad_())
    assert not sharpened_target(assign).requires_grad


def test_divergence_is_nothing_at_the_target_alone():
    assign = student_assignment(*random_codes())
    assert target_divergence(assign, assign).item() == pytest.approx(0, abs=1e-12)
    assert target_divergence(sharpened_target(assign), assign) > 0
    sure = torch.eye(3)
    assert target_divergence(sure, sure) == 0


def test_gradient_is_the_slope():
    codes, centres = (part.requires_grad_() for part in random_codes())
    target = sharpened_target(student_assignment(codes, centres))
    assert torch.autograd.gradcheck(
        lambda u, v: target_divergence(target, student_assignment(u, v)), (codes, centres)
    )

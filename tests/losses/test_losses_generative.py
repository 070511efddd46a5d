import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from dcdc.losses import (
    discriminator_loss,
    gaussian_divergence,
    generator_loss,
    reconstruction_loss,
    sharpened_target,
    student_assignment,
    target_divergence,
)


def test_reconstruction_is_as_the_slow_loop_has_it():
    made, images = torch.randn(2, 3, 2, 4, 4, dtype=torch.float64).unbind()
    total = 0.0
    for image in range(3):
        for value, wanted in zip(
            made[image].flatten().tolist(), images[image].flatten().tolist(), strict=True
        ):
            total += (value - wanted) ** 2 / 2
    assert reconstruction_loss(made, images).item() == pytest.approx(total / 3, rel=1e-12)


def test_nothing_is_lost_where_all_is_made_again():
    images = torch.rand(3, 1, 8, 8)
    assert reconstruction_loss(images, images) == 0


def test_half_precision_is_lifted_and_gradients_are_right():
    made = torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    images = torch.randn(2, 1, 3, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: reconstruction_loss(x, images), (made,))
    assert reconstruction_loss(made.bfloat16(), images.bfloat16()).dtype == torch.float32


def test_another_shape_is_named():
    with pytest.raises(ValueError, match=r"\(2, 1, 8, 8\) were reconstructed as \(2, 1, 7, 7\)"):
        reconstruction_loss(torch.rand(2, 1, 7, 7), torch.rand(2, 1, 8, 8))


def random_codes(n_images=4, n_code=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, n_images, n_code, generator=generator, dtype=torch.float64).unbind()


def test_divergence_is_as_the_slow_loop_has_it():
    mean, log_variance = random_codes()
    total = 0.0
    for image in range(4):
        for number in range(3):
            m, v = mean[image, number].item(), math.exp(log_variance[image, number].item())
            total += (m * m + v - 1 - math.log(v)) / 2
    assert gaussian_divergence(mean, log_variance).item() == pytest.approx(total / 4, rel=1e-12)


def test_divergence_is_as_torch_s_distributions_have_it():
    mean, log_variance = random_codes()
    wanted = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(gaussian_divergence(mean, log_variance), wanted)


def test_divergence_is_nothing_for_the_standard_gaussian_alone():
    zeros = torch.zeros(5, 2)
    assert gaussian_divergence(zeros, zeros) == 0
    for changed in (zeros + 0.1, zeros - 0.1):
        assert gaussian_divergence(changed, zeros) > 0
        assert gaussian_divergence(zeros, changed) > 0


def test_gradient_of_the_divergence_is_its_slope():
    codes = tuple(part.requires_grad_() for part in random_codes())
    assert torch.autograd.gradcheck(gaussian_divergence, codes)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_adversaries_are_as_the_slow_loops_have_them():
    real, made = torch.tensor([0.3, -1.2, 2.0]).double(), torch.tensor([-0.7, 0.1]).double()
    told = (
        sum(-math.log(sigmoid(x)) for x in real.tolist()) / 3
        + sum(-math.log(1 - sigmoid(x)) for x in made.tolist()) / 2
    ) / 2
    assert discriminator_loss(real, made).item() == pytest.approx(told, rel=1e-9)
    fooled = sum(-math.log(sigmoid(x)) for x in made.tolist()) / 2
    assert generator_loss(made).item() == pytest.approx(fooled, rel=1e-9)


def test_who_cannot_tell_loses_log_two():
    undecided = torch.zeros(4)
    assert discriminator_loss(undecided, undecided).item() == pytest.approx(math.log(2))
    assert generator_loss(undecided).item() == pytest.approx(math.log(2))


def test_what_is_good_for_the_one_is_bad_for_the_other():
    fooled, found_out = torch.full((3,), 4.0), torch.full((3,), -4.0)
    assert generator_loss(fooled) < generator_loss(found_out)
    real = torch.full((3,), 4.0)
    assert discriminator_loss(real, found_out) < discriminator_loss(real, fooled)


def test_losses_of_extreme_logits_stay_finite():
    logits = torch.tensor([1e4, -1e4], requires_grad=True)
    loss = discriminator_loss(logits, logits) + generator_loss(logits)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()


def codes_and_centres(n_images=6, n_code=3, n_clusters=4):
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


def test_dec_s_parts_are_as_the_slow_loops_have_them():
    codes, centres = codes_and_centres()
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
    codes, centres = codes_and_centres()
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
    codes, centres = codes_and_centres()
    assign = student_assignment(codes, centres.requires_grad_())
    assert not sharpened_target(assign).requires_grad


def test_divergence_is_nothing_at_the_target_alone():
    assign = student_assignment(*codes_and_centres())
    assert target_divergence(assign, assign).item() == pytest.approx(0, abs=1e-12)
    assert target_divergence(sharpened_target(assign), assign) > 0
    sure = torch.eye(3)
    assert target_divergence(sure, sure) == 0


def test_gradient_of_the_target_divergence_is_its_slope():
    codes, centres = (part.requires_grad_() for part in codes_and_centres())
    target = sharpened_target(student_assignment(codes, centres))
    assert torch.autograd.gradcheck(
        lambda u, v: target_divergence(target, student_assignment(u, v)), (codes, centres)
    )

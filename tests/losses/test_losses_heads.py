import math

import pytest
import torch
from loss_examples import cosine, random_pair
from torch import Tensor

from dcdc.losses import (
    agreement_loss,
    balance_loss,
    class_affinity,
    class_view_loss,
    dcdc_loss,
    iic_loss,
    joint_assignment,
    mutual_information,
    sample_affinity,
    sample_view_loss,
    scan_loss,
)


def test_affinities_hold_the_cosines_entry_by_entry():
    assign, perturbed = random_pair(4, 2, 3)
    sample, classes = sample_affinity(assign, perturbed), class_affinity(assign, perturbed)
    assert sample.shape == (8, 8)
    assert classes.shape == (3, 3)
    for i in range(8):
        for j in range(8):
            expected = cosine(assign[i % 4].tolist(), perturbed[j].tolist())
            assert sample[i, j].item() == pytest.approx(expected)
    column = lambda table, k: table[:, k].tolist()  # noqa: E731
    for k in range(3):
        for m in range(3):
            expected = cosine(column(assign, k) * 2, column(perturbed, m))
            assert classes[k, m].item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("assign", "perturbed", "message"),
    [
        (torch.ones(4, 3), torch.ones(6, 3), "got 6 rows for 4 images"),
        (torch.ones(4, 3), torch.ones(4, 2), "got 3 and 2"),
        (torch.ones(4), torch.ones(4), "must be matrices"),
        (torch.ones(0, 3), torch.ones(0, 3), "got 0 rows for 0 images"),
    ],
)
@pytest.mark.parametrize("loss", [sample_affinity, class_affinity, dcdc_loss])
def test_wrong_shapes_are_named(assign, perturbed, message, loss):
    with pytest.raises(ValueError, match=message):
        loss(assign, perturbed)


SIZES = [(5, 1, 4), (6, 3, 10), (3, 2, 2), (1, 3, 4), (1, 1, 2), (7, 3, 70)]


def slow_contrast(left, right, temperature) -> float:
    losses = []
    for i, row in enumerate(left):
        scores = [math.exp(cosine(row, other) / temperature) for other in right]
        losses.append(-math.log(scores[i] / sum(scores)))
    return sum(losses) / len(losses)


def slow_sample_view(assign, assign_perturbed, temperature) -> float:
    n_images = len(assign)
    originals = [assign[i % n_images].tolist() for i in range(len(assign_perturbed))]
    return slow_contrast(originals, assign_perturbed.tolist(), temperature)


def slow_class_view(assign, assign_perturbed, temperature) -> float:
    n_images, n_clusters = assign.shape
    left = [
        [assign[i % n_images, k].item() for i in range(len(assign_perturbed))]
        for k in range(n_clusters)
    ]
    right = [[row[k].item() for row in assign_perturbed] for k in range(n_clusters)]
    return slow_contrast(left, right, temperature)


@pytest.mark.parametrize(("n_images", "n_repeats", "n_clusters"), SIZES)
@pytest.mark.parametrize("temperature", [0.3, 0.5, 1.0])
def test_views_agree_with_the_slow_loops(n_images, n_repeats, n_clusters, temperature):
    pair = random_pair(n_images, n_repeats, n_clusters)
    assert sample_view_loss(*pair, temperature).item() == pytest.approx(
        slow_sample_view(*pair, temperature), rel=1e-12
    )
    assert class_view_loss(*pair, temperature).item() == pytest.approx(
        slow_class_view(*pair, temperature), rel=1e-12
    )


def test_renumbering_clusters_or_reordering_images_changes_nothing():
    assign, perturbed = random_pair(6, 3, 5)
    clusters = torch.tensor([3, 0, 4, 1, 2])
    images = torch.tensor([5, 2, 0, 1, 4, 3])
    copies = torch.cat([images + 6 * copy for copy in range(3)])
    before = dcdc_loss(assign, perturbed, balance_weight=1.0)
    for after in (
        dcdc_loss(assign[:, clusters], perturbed[:, clusters], balance_weight=1.0),
        dcdc_loss(assign[images], perturbed[copies], balance_weight=1.0),
    ):
        assert after.total.item() == pytest.approx(before.total.item(), rel=1e-12)
    # but pairing images with other images' copies does change it
    wrongly_paired = sample_view_loss(assign[images], perturbed).item()
    assert wrongly_paired != pytest.approx(before.terms["sample_view"].item(), rel=1e-3)


def test_order_of_whole_copies_does_not_matter():
    assign, perturbed = random_pair(6, 3, 5)
    swapped = torch.cat([perturbed[12:], perturbed[:6], perturbed[6:12]])
    assert dcdc_loss(assign, swapped).total.item() == pytest.approx(
        dcdc_loss(assign, perturbed).total.item(), rel=1e-12
    )


def test_the_best_partition_scores_lower_than_any_confusion():
    ideal = torch.eye(4, dtype=torch.float64).repeat(2, 1)
    uniform = torch.full_like(ideal, 0.25)
    collapsed = torch.eye(4, dtype=torch.float64)[torch.zeros(8, dtype=torch.long)]
    best = dcdc_loss(ideal, ideal).total
    assert best < dcdc_loss(uniform, uniform).total
    assert best < dcdc_loss(collapsed, collapsed).total


def test_balance_is_zero_when_even_and_log_k_when_collapsed():
    even = torch.eye(5)
    assert balance_loss(even).item() == pytest.approx(0, abs=1e-6)
    assert balance_loss(torch.full((3, 5), 0.2)).item() == pytest.approx(0, abs=1e-6)
    assert balance_loss(even[torch.zeros(7, dtype=torch.long)]).item() == pytest.approx(math.log(5))
    assign, _ = random_pair(6, 1, 4)
    mean = [sum(column) / 6 for column in assign.T.tolist()]
    expected = math.log(4) + sum(p * math.log(p) for p in mean)
    assert balance_loss(assign).item() == pytest.approx(expected, rel=1e-12)


def test_total_is_the_weighted_sum_of_its_terms():
    pair = random_pair(6, 3, 5)
    loss = dcdc_loss(*pair, 0.3, sample_weight=0.5, class_weight=2.0, balance_weight=3.0)
    sample, classes = sample_view_loss(*pair, 0.3), class_view_loss(*pair, 0.3)
    balance = balance_loss(pair[0])
    assert loss.terms == {"sample_view": sample, "class_view": classes, "balance": balance}
    assert loss.total.item() == pytest.approx((0.5 * sample + 2 * classes + 3 * balance).item())


def test_one_view_alone_is_a_weight_of_zero():
    pair = random_pair(6, 3, 5)
    sample_alone = dcdc_loss(*pair, class_weight=0.0)
    class_alone = dcdc_loss(*pair, sample_weight=0.0)
    assert (sample_alone.total, set(sample_alone.terms)) == (
        sample_view_loss(*pair),
        {"sample_view"},
    )
    assert (class_alone.total, set(class_alone.terms)) == (class_view_loss(*pair), {"class_view"})
    with pytest.raises(ValueError, match="all loss weights are zero"):
        dcdc_loss(*pair, sample_weight=0, class_weight=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_computed_in_float32_whatever_comes_in(dtype):
    assign, perturbed = (part.to(dtype) for part in random_pair(6, 3, 5))
    loss = dcdc_loss(assign, perturbed, balance_weight=1.0)
    lifted = dcdc_loss(assign.float(), perturbed.float(), balance_weight=1.0)
    assert loss.total.dtype == torch.float32
    assert loss.total == lifted.total


def test_autocast_does_not_lower_the_precision():
    assign, perturbed = (part.float() for part in random_pair(6, 3, 5))
    outside = dcdc_loss(assign, perturbed).total
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert dcdc_loss(assign, perturbed).total == outside


def degenerate(name: str) -> tuple[Tensor, Tensor]:
    one_hot = torch.eye(4)[torch.tensor([0, 1, 2, 0])]  # column 3 is empty
    return {
        "one-hot rows and an empty column": (one_hot, one_hot.repeat(3, 1)),
        "all in one cluster": (
            torch.eye(4)[torch.zeros(4, dtype=torch.long)],
            torch.eye(4)[torch.zeros(12, dtype=torch.long)],
        ),
        "opposite one-hot": (torch.eye(2), torch.eye(2).flip(0)),
        "two clusters": (torch.eye(2), torch.tensor([[0.5, 0.5], [0.1, 0.9]])),
        "one image": (torch.tensor([[0.2, 0.8]]), torch.tensor([[0.3, 0.7]] * 3)),
        "tiny columns": (torch.tensor([[1.0, 1e-30]] * 3), torch.tensor([[1.0, 1e-30]] * 9)),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "one-hot rows and an empty column",
        "all in one cluster",
        "opposite one-hot",
        "two clusters",
        "one image",
        "tiny columns",
    ],
)
def test_finite_value_and_gradient_at_the_edges(name):
    assign, perturbed = (part.clone().requires_grad_() for part in degenerate(name))
    loss = dcdc_loss(assign, perturbed, 0.3, balance_weight=1.0)
    gradients = torch.autograd.grad(loss.total, [assign, perturbed])
    assert torch.isfinite(loss.total)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_gradient_through_a_saturated_softmax_is_finite_and_tame(scale):
    generator = torch.Generator().manual_seed(1)
    logits = (scale * torch.randn(8, 6, generator=generator)).requires_grad_()
    assign = torch.softmax(logits, dim=1)
    loss = dcdc_loss(assign, assign.detach().roll(1, 0), 0.3, balance_weight=1.0)
    (gradient,) = torch.autograd.grad(loss.total, logits)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() < 10


def test_gradient_is_the_slope_of_the_loss():
    assign, perturbed = (part.requires_grad_() for part in random_pair(3, 2, 4))
    assert torch.autograd.gradcheck(
        lambda u, v: dcdc_loss(u, v, 0.4, balance_weight=0.7).total, (assign, perturbed)
    )


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        sample_view_loss(*random_pair(3, 1, 3), temperature)


def slow_mutual_information(assign, perturbed):
    n_images, n_clusters = assign.shape
    n_rows = len(perturbed)
    joint = [[0.0] * n_clusters for _ in range(n_clusters)]
    for row in range(n_rows):
        for i in range(n_clusters):
            for j in range(n_clusters):
                share = assign[row % n_images, i].item() * perturbed[row, j].item()
                joint[i][j] += share / n_rows / 2
                joint[j][i] += share / n_rows / 2
    across = [sum(joint[i][j] for j in range(n_clusters)) for i in range(n_clusters)]
    return sum(
        joint[i][j] * math.log(joint[i][j] / (across[i] * across[j]))
        for i in range(n_clusters)
        for j in range(n_clusters)
    )


@pytest.mark.parametrize(("n_images", "n_repeats", "n_clusters"), [(4, 1, 3), (5, 3, 2), (3, 2, 6)])
def test_as_the_slow_loop_has_it(n_images, n_repeats, n_clusters):
    pair = random_pair(n_images, n_repeats, n_clusters)
    found = mutual_information(*pair).item()
    assert found == pytest.approx(slow_mutual_information(*pair), rel=1e-12)


def test_the_joint_is_a_symmetric_distribution():
    joint = joint_assignment(*random_pair(7, 3, 4))
    torch.testing.assert_close(joint, joint.T)
    assert joint.sum().item() == pytest.approx(1)
    assert (joint > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_it_lies_between_nothing_and_log_k(seed):
    assert 0 <= mutual_information(*random_pair(9, 2, 5, seed)).item() <= math.log(5)


def test_sure_even_and_agreeing_is_the_most_there_is():
    sure = torch.eye(4, dtype=torch.float64).repeat(3, 1)
    assert mutual_information(sure, sure.repeat(2, 1)).item() == pytest.approx(math.log(4))


@pytest.mark.parametrize("kind", ["undecided", "collapsed"])
def test_undecided_and_collapsed_say_nothing(kind):
    rows = torch.full((6, 3), 1 / 3) if kind == "undecided" else torch.eye(3)[[0] * 6]
    assert mutual_information(rows, rows).item() == pytest.approx(0, abs=1e-6)


def test_names_of_clusters_order_of_images_and_which_copy_is_which_do_not_matter():
    assign, perturbed = random_pair(6, 1, 4)
    before = mutual_information(assign, perturbed)
    clusters, images = torch.tensor([2, 0, 3, 1]), torch.tensor([5, 1, 0, 4, 2, 3])
    for pair in (
        (assign[:, clusters], perturbed[:, clusters]),
        (assign[images], perturbed[images]),
        (perturbed, assign),
    ):
        torch.testing.assert_close(mutual_information(*pair), before)
    assert not torch.isclose(mutual_information(assign, perturbed[images]), before)


def test_the_loss_is_its_negative_under_its_name():
    pair = random_pair(5, 2, 3)
    loss = iic_loss(*pair)
    assert loss.total == -mutual_information(*pair)
    assert loss.terms == {"mutual_information": loss.total}


def test_gradient_is_the_slope_and_finite_where_a_cluster_is_empty():
    pair = tuple(part.requires_grad_() for part in random_pair(3, 2, 4))
    assert torch.autograd.gradcheck(mutual_information, pair)
    logits = torch.full((4, 3), 50.0)
    logits[:, 0] = 0
    logits[:, 1] = -1e4
    logits.requires_grad_()
    assign = torch.softmax(logits, dim=1)
    (gradient,) = torch.autograd.grad(iic_loss(assign, assign.detach()).total, logits)
    assert torch.isfinite(gradient).all()


def test_half_precision_is_lifted():
    assign, perturbed = (part.bfloat16() for part in random_pair(6, 2, 4))
    found = mutual_information(assign, perturbed)
    assert found.dtype == torch.float32
    assert found == mutual_information(assign.float(), perturbed.float())


@pytest.mark.parametrize(("n_images", "n_repeats", "n_clusters"), SIZES)
def test_scan_is_what_the_loops_say(n_images, n_repeats, n_clusters):
    assign, perturbed = random_pair(n_images, n_repeats, n_clusters)
    apart = 0.0
    for i, row in enumerate(perturbed.tolist()):
        original = assign[i % n_images].tolist()
        apart -= math.log(sum(a * b for a, b in zip(original, row, strict=True)))
    entropy = 0.0
    for k in range(n_clusters):
        share = sum(assign[i, k].item() for i in range(n_images)) / n_images
        entropy -= share * math.log(share)
    loss = scan_loss(assign, perturbed, 3.0)
    assert loss.terms["agreement"].item() == pytest.approx(apart / len(perturbed))
    assert loss.terms["balance"].item() == pytest.approx(math.log(n_clusters) - entropy, abs=1e-6)
    wanted = apart / len(perturbed) + 3 * (math.log(n_clusters) - entropy)
    assert loss.total.item() == pytest.approx(wanted, abs=1e-6)


def test_scan_is_least_where_neighbours_are_sure_and_clusters_even_and_finite_where_not():
    sure = torch.eye(4)
    assert scan_loss(sure, sure).total.item() == pytest.approx(0, abs=1e-6)
    one_cluster = torch.eye(4)[:1].expand(4, 4)
    assert scan_loss(one_cluster, one_cluster).total.item() == pytest.approx(5 * math.log(4))
    logits = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    loss = agreement_loss(logits.softmax(1), torch.eye(2).flip(0))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()

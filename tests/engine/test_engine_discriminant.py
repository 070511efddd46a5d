import numpy as np
import pytest
import torch

from dcdc.engine.discriminant import FLOOR, discriminant_directions


def some_copies(n_images=60, n_features=5, n_copies=3, seed=0):
    """Every image at its own place, and each feature shaken more than the one before it."""
    draws = np.random.default_rng(seed)
    places = draws.normal(size=(1, n_images, n_features))
    shaken = draws.normal(size=(n_copies, n_images, n_features)) * [0.01, 0.1, 0.5, 2, 8]
    return torch.from_numpy((places + shaken).astype(np.float32))


def by_loops(copies, n, floor=FLOOR):
    """Fisher's directions by scipy, from sums over images and copies one by one."""
    from scipy.linalg import eigh

    copies = copies.double().numpy()
    n_copies, n_images, n_features = copies.shape
    means = [sum(copies[c, i] for c in range(n_copies)) / n_copies for i in range(n_images)]
    middle = sum(means) / n_images
    within, between = np.zeros((n_features,) * 2), np.zeros((n_features,) * 2)
    for i in range(n_images):
        between += np.outer(means[i] - middle, means[i] - middle) / n_images
        for c in range(n_copies):
            apart = copies[c, i] - means[i]
            within += np.outer(apart, apart) / (n_images * (n_copies - 1))
    within += floor * np.trace(within) / n_features * np.eye(n_features)
    axes = eigh(between, within)[1][:, -n:]
    return np.stack([(mean - middle) @ axes for mean in means])


@pytest.mark.parametrize(("n", "floor"), [(1, FLOOR), (3, FLOOR), (5, FLOOR), (3, 0.1)])
def test_fishers_directions_as_loops_find_them(n, floor):
    copies = some_copies()
    found = discriminant_directions([copies], n, floor).along()
    assert found.shape == (60, n)
    assert found.dtype == np.float32
    expected = by_loops(copies, n, floor)
    np.testing.assert_allclose(abs(found), abs(expected), rtol=2e-3, atol=2e-3)


def test_chunks_are_as_good_as_all_at_once():
    copies = some_copies()
    parts = [copies[:, :7], copies[:, 7:30], copies[:, 30:]]
    whole = discriminant_directions([copies], 3).along()
    np.testing.assert_allclose(
        abs(discriminant_directions(parts, 3).along()), abs(whole), rtol=1e-3, atol=1e-3
    )


def test_turned_and_larger_features_lead_to_the_same_places():
    copies = some_copies()
    turned = copies @ torch.linalg.qr(torch.randn(5, 5, generator=torch.manual_seed(0)))[0] * 7
    ones, others = (
        discriminant_directions([copies], 3).along(),
        discriminant_directions([turned], 3).along(),
    )
    expected = ones @ ones.T
    np.testing.assert_allclose(others @ others.T, expected, atol=1e-2 * abs(expected).max())


def test_what_copies_share_leads_and_what_differs_among_them_does_not():
    copies = some_copies()
    found = discriminant_directions([copies], 5).along()
    most_discriminant, shakiest = copies.mean(0)[:, 0].numpy(), copies.mean(0)[:, 4].numpy()
    assert abs(np.corrcoef(found[:, -1], most_discriminant)[0, 1]) > 0.99
    assert abs(np.corrcoef(found[:, -1], shakiest)[0, 1]) < 0.3
    assert found[:, -1].std() > 10 * found[:, 0].std()


def test_few_images_and_copies_that_never_differ_are_borne():
    assert discriminant_directions([some_copies(n_images=3)], 5).along().shape == (3, 2)
    still = torch.ones(2, 6, 4) * torch.arange(6.0)[None, :, None]
    assert np.isfinite(discriminant_directions([still], 2).along()).all()

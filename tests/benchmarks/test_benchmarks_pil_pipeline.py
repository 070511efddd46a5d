import pickle
import random
from dataclasses import replace

import pytest
import torch

from baselines.batches import image_shape
from baselines.pil_pipeline import draw_box, draw_move
from baselines.reference import pil_copies


@pytest.fixture(autouse=True)
def same_draws():
    random.seed(0)
    torch.manual_seed(0)


def copies_of(case, **changes):
    return replace(pil_copies(case), **changes)(case.image_set.images[0])


NOTHING = {
    "resize_to": 0,
    "crop_scale": None,
    "brightness": 0.0,
    "contrast": 0.0,
    "saturation": 0.0,
    "hue": 0.0,
    "grey": 0.0,
    "flip": 0.0,
    "rotation": 0.0,
    "shift": 0.0,
    "scale": (1.0, 1.0),
    "shear": 0.0,
    "noise": 0.0,
}


def test_an_original_and_as_many_perturbed_copies_as_asked_for(case):
    copies = pickle.loads(pickle.dumps(pil_copies(case)))(case.image_set.images[0])
    assert len(copies) == 3
    assert all(copy.shape == image_shape(case) for copy in copies)
    assert not torch.equal(copies[1], copies[2])


def test_all_off_leaves_the_image_normalised(case):
    expected = torch.from_numpy(case.image_set.images[0]).permute(2, 0, 1) / 255
    network = case.config.network
    mean, std = (torch.tensor(value)[:, None, None] for value in (network.mean, network.std))
    for copy in copies_of(case, **NOTHING):
        torch.testing.assert_close(copy, (expected - mean) / std)


@pytest.mark.parametrize(
    "change",
    [
        {"crop_scale": (0.2, 0.5)},
        {"brightness": 0.4},
        {"contrast": 0.4},
        {"saturation": 0.4},
        {"hue": 0.4},
        {"grey": 1.0},
        {"flip": 1.0},
        {"rotation": 14.0},
        {"shift": 0.3},
        {"scale": (1.3, 1.5)},
        {"shear": 20.0},
        {"noise": 0.05},
    ],
)
def test_each_setting_changes_the_perturbed_copies_alone(case, change):
    (name,) = change
    if name in ("saturation", "hue", "grey") and image_shape(case)[0] == 1:
        pytest.skip("one channel has no colour to change")
    plain = copies_of(case, **NOTHING)
    original, *perturbed = copies_of(case, **(NOTHING | change))
    assert torch.equal(original, plain[0])
    assert not any(torch.equal(copy, plain[1]) for copy in perturbed)


def test_resize_and_crop_change_the_original_alone(case):
    plain = copies_of(case, **NOTHING)
    side = image_shape(case)[1]
    original, *perturbed = copies_of(case, **(NOTHING | {"resize_to": side + 8}))
    assert not torch.equal(original, plain[0])
    assert all(torch.equal(copy, plain[1]) for copy in perturbed)


def test_boxes_and_moves_keep_their_bounds():
    for _ in range(500):
        top, left, height, width = draw_box(32, (0.2, 1.0), (3 / 4, 4 / 3))
        assert 0 <= top <= 32 - height
        assert 0 <= left <= 32 - width
        assert 0.15 < height * width / 32**2 <= 1
        assert 0.65 < width / height < 1.5
        angle, right, down, scale, shear = draw_move(8, 14, 0.15, (0.85, 1.15), 6)
        assert max(abs(right), abs(down)) <= 1
        assert right == int(right)
        assert abs(angle) <= 14
        assert abs(shear) <= 6
        assert 0.85 <= scale <= 1.15


def test_a_box_that_never_fits_is_the_largest_in_the_centre():
    assert draw_box(32, (1.0, 1.0), (2.0, 3.0)) == (8, 0, 16, 32)

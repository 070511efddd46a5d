import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dcdc.augment.resample import axis_weights, resample


def resample_box(images, boxes, out):
    top, left, height, width = boxes.unbind(1)
    rows = axis_weights(top, height, images.shape[2], out[0])
    columns = axis_weights(left, width, images.shape[3], out[1])
    return resample(images, rows, columns)


def pil_crop_then_resize(images, boxes, out):
    """The first channel of each image, in PIL's mode F."""
    return np.stack(
        [
            Image.fromarray(image[0].numpy())
            .crop((left, top, left + width, top + height))
            .resize(out[::-1], Image.Resampling.BILINEAR)
            for image, (top, left, height, width) in zip(images, boxes.tolist(), strict=True)
        ]
    )


@pytest.mark.parametrize("out", [(8, 8), (20, 31), (3, 40), (5, 4), (1, 1)])
@pytest.mark.parametrize("box", [(0, 0, 16, 24), (3, 5, 9, 11), (15, 23, 1, 1), (2, 0, 12, 24)])
def test_equals_pil_crop_then_resize(box, out):
    image = torch.rand(1, 1, 16, 24, generator=torch.Generator().manual_seed(1))
    boxes = torch.tensor([box])
    ours = resample_box(image, boxes, out)[:, 0].numpy()
    np.testing.assert_allclose(ours, pil_crop_then_resize(image, boxes, out), atol=2e-6)


@st.composite
def boxes_and_sizes(draw):
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    boxes = []
    for _ in range(3):
        h, w = draw(st.integers(1, height)), draw(st.integers(1, width))
        boxes.append((draw(st.integers(0, height - h)), draw(st.integers(0, width - w)), h, w))
    return height, width, boxes, (draw(st.integers(1, 30)), draw(st.integers(1, 30)))


@settings(max_examples=60, deadline=None)
@given(boxes_and_sizes())
def test_each_image_has_its_own_box(case):
    height, width, boxes, out = case
    images = torch.rand(3, 1, height, width, generator=torch.Generator().manual_seed(2))
    boxes = torch.tensor(boxes)
    ours = resample_box(images, boxes, out)[:, 0].numpy()
    np.testing.assert_allclose(ours, pil_crop_then_resize(images, boxes, out), atol=2e-6)


def test_pixels_outside_the_box_have_no_say():
    images = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(3))
    loud = torch.full_like(images, 1e6)
    loud[:, :, 4:9, 2:8] = images[:, :, 4:9, 2:8]
    box = torch.tensor([[4, 2, 5, 6]])
    assert torch.equal(resample_box(images, box, (12, 12)), resample_box(loud, box, (12, 12)))


def test_whole_image_at_its_own_size_is_left_as_it_is():
    images = torch.rand(2, 3, 7, 10, generator=torch.Generator().manual_seed(4))
    box = torch.tensor([[0, 0, 7, 10]]).expand(2, 4)
    assert torch.equal(resample_box(images, box, (7, 10)), images)


def test_one_matrix_serves_all_images():
    images = torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(5))
    box = torch.tensor([[1, 0, 4, 6]])
    shared = resample_box(images, box, (5, 5))
    torch.testing.assert_close(shared, resample_box(images, box.expand(4, 4), (5, 5)))

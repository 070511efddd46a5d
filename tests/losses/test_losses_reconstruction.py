import pytest
import torch

from dcdc.losses import reconstruction_loss


def test_as_the_slow_loop_has_it():
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

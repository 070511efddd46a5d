import pytest
import torch
from torch import nn

from dcdc.networks.layers import Dense, EmaTarget, Normalise, Sobel, front


def test_normalise_subtracts_and_divides_per_channel():
    images = torch.rand(2, 3, 4, 4)
    normalised = Normalise((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))(images)
    for channel, (mean, std) in enumerate([(0.1, 0.5), (0.2, 0.6), (0.3, 0.7)]):
        expected = (images[:, channel] - mean) / std
        torch.testing.assert_close(normalised[:, channel], expected)


def test_normalise_refuses_a_deviation_of_zero():
    with pytest.raises(ValueError, match="positive std"):
        Normalise((0.1,), (0.0,))


@pytest.mark.parametrize("channels", [1, 3])
def test_sobel_agrees_with_a_loop_over_pixels(channels):
    images = torch.rand(2, channels, 5, 6)
    edges = Sobel()(images)
    assert edges.shape == (2, 2, 5, 6)
    across = [[1, 0, -1], [2, 0, -2], [1, 0, -1]]
    for image in range(2):
        grey = images[image].mean(0)
        for i in range(5):
            for j in range(6):
                found = [0.0, 0.0]
                for di in range(3):
                    for dj in range(3):
                        row, column = i + di - 1, j + dj - 1
                        if 0 <= row < 5 and 0 <= column < 6:
                            pixel = grey[row, column].item()
                            found[0] += across[di][dj] * pixel
                            found[1] += across[dj][di] * pixel
                assert edges[image, 0, i, j].item() == pytest.approx(found[0], abs=1e-5)
                assert edges[image, 1, i, j].item() == pytest.approx(found[1], abs=1e-5)


def test_sobel_is_fixed():
    assert list(Sobel().parameters()) == []


@pytest.mark.parametrize("sobel", [Sobel(), None])
def test_autocast_does_not_round_what_the_backbone_reads(sobel):
    images, normalise = torch.rand(2, 3, 5, 6), Normalise((0.5,) * 3, (0.2,) * 3)
    outside = front(images, normalise, sobel)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = front(images, normalise, sobel)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)


def test_it_is_a_linear_layer():
    torch.manual_seed(0)
    dense = Dense(1024, 256)
    plain = torch.nn.Linear(1024, 256)
    plain.load_state_dict(dense.state_dict())
    x = torch.randn(3, 1024)
    for mode in (True, False):
        dense.train(mode)
        torch.testing.assert_close(dense(x), plain(x))


def test_in_evaluation_a_row_has_one_answer():
    torch.manual_seed(0)
    dense, x = Dense(1024, 256).eval(), torch.randn(40, 1024)
    together = dense(x)
    for n in (1, 2, 7, 15, 16, 17):
        assert torch.equal(dense(x[:n]), together[:n])


def test_no_row_is_no_row():
    assert Dense(4, 2).eval()(torch.empty(0, 4)).shape == (0, 2)


@pytest.fixture
def followed():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 2 * 2, 5)
    ).to(memory_format=torch.channels_last)


def move(module):
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight))


def test_it_begins_as_what_it_follows_and_shares_nothing_with_it(followed):
    images = torch.rand(6, 3, 4, 4)
    target = EmaTarget(followed)
    before = followed(images).detach()
    assert torch.equal(target(images), before)
    move(followed)
    assert torch.equal(target(images), before)
    target.catch_up(followed)
    assert torch.equal(target(images), followed(images))


def test_it_has_no_parameters_no_gradient_and_the_same_layout(followed):
    target = EmaTarget(followed)
    assert not list(target.parameters())
    images = torch.rand(6, 3, 4, 4, requires_grad=True)
    assert not target(images).requires_grad
    assert target.state_dict().keys() == {f"network.{name}" for name in followed.state_dict()}
    for name, tensor in followed.state_dict().items():
        assert target.state_dict()[f"network.{name}"].stride() == tensor.stride()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_following_moves_every_weight_and_no_statistics(followed, momentum):
    target = EmaTarget(followed)
    start = {name: tensor.clone() for name, tensor in target.network.state_dict().items()}
    move(followed)
    followed[1].running_mean.fill_(7)
    theirs = {name: weight.detach().clone() for name, weight in followed.named_parameters()}
    target.follow(followed, momentum)
    for name, tensor in target.network.state_dict().items():
        expected = start[name]
        if name in theirs:
            expected = momentum * expected + (1 - momentum) * theirs[name]
        torch.testing.assert_close(tensor, expected, msg=name)
    for name, weight in followed.named_parameters():
        assert torch.equal(weight, theirs[name])


def test_the_state_is_read_back(followed):
    target = EmaTarget(followed)
    move(followed)
    target.follow(followed, 0.5)
    target(torch.rand(6, 3, 4, 4))  # its statistics are its own
    other = EmaTarget(followed)
    other.load_state_dict(target.state_dict())
    for name, tensor in target.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name

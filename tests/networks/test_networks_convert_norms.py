"""Converted batch norms against a pass for each copy group, and what they must not change."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dcdc.errors import InputError
from dcdc.networks import ClusteringNetwork, convert_copy_group_norm, copy_groups, share_statistics
from dcdc.runtime.launch import Launch
from dcdc.runtime.processes import Processes


class BatchNormAct2d(nn.BatchNorm2d):
    """A norm and its activation in one layer, as timm has it."""

    def __init__(self, n_channels: int) -> None:
        super().__init__(n_channels)
        self.act = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, var = self.running_mean, self.running_var
        if self.training:
            self.num_batches_tracked.add_(1)
        y = F.batch_norm(
            x, mean, var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        return self.act(y)


class Own(nn.Module):
    """Norms of three kinds, at three depths."""

    n_features = 6

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.stages = nn.ModuleDict(
            {"first": nn.Sequential(nn.Sequential(nn.Conv2d(4, 5, 3), BatchNormAct2d(5)))}
        )
        self.last = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = self.stages["first"](self.stem(x))
        return self.last(maps.mean(dim=(2, 3)))


def seeded() -> Own:
    """Weights and running statistics away from 0 and 1."""
    torch.manual_seed(0)
    module = Own()
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if "running" in name:
                tensor.uniform_(0.5, 1.5)
        for norm in module.modules():
            if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
                norm.weight.uniform_(0.5, 1.5)
                norm.bias.uniform_(-0.5, 0.5)
    return module


def images(n: int = 9) -> torch.Tensor:
    return torch.randn(n, 3, 8, 8, generator=torch.Generator().manual_seed(1))


SIZES = [(9,), (4, 5), (3, 2, 4)]


@pytest.mark.parametrize("sizes", SIZES)
def test_one_pass_over_groups_is_a_pass_for_each(sizes):
    """In float64: gradients of a float32 norm have a processor's own last digits."""
    plain, converted = seeded().double(), convert_copy_group_norm(seeded()).double()
    apart = torch.cat([plain(part) for part in torch.split(images().double(), sizes)])
    with copy_groups(converted, sizes):
        together = converted(images().double())
    torch.testing.assert_close(together, apart)
    for module, y in ((plain, apart), (converted, together)):
        y.square().sum().backward()
        assert all(weight.grad is not None for weight in module.parameters())
    for ours, theirs in zip(converted.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(converted.named_buffers())[name], buffer, msg=name)


def test_groups_do_matter():
    converted = convert_copy_group_norm(seeded())
    whole = converted(images())
    with copy_groups(converted, (4, 5)):
        assert not torch.allclose(converted(images()), whole, atol=1e-3)
    torch.testing.assert_close(converted(images()), whole)  # outside the block it is one group


def test_groups_that_do_not_make_up_the_batch_are_refused():
    converted = convert_copy_group_norm(seeded())
    with copy_groups(converted, (4, 4)), pytest.raises(ValueError, match=r"\(4, 4\) .* batch of 9"):
        converted(images())


def test_evaluation_is_unchanged_and_does_not_look_at_groups():
    plain, converted = seeded().eval(), convert_copy_group_norm(seeded()).eval()
    with copy_groups(converted, (4, 5)):
        assert torch.equal(converted(images()), plain(images()))
    for name, buffer in seeded().named_buffers():
        assert torch.equal(dict(converted.named_buffers())[name], buffer), name


def test_a_norm_alone_and_a_norm_met_twice_are_converted_once():
    alone = nn.BatchNorm2d(3)
    assert convert_copy_group_norm(alone) is alone
    kind = type(alone)
    assert issubclass(kind, nn.BatchNorm2d)
    assert kind is not nn.BatchNorm2d
    convert_copy_group_norm(nn.Sequential(alone, nn.Sequential(alone)))
    assert type(alone) is kind


def test_a_lazy_norm_has_to_see_a_batch_first():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LazyBatchNorm2d())
    with pytest.raises(InputError, match=r"1 \(LazyBatchNorm2d\) has no size yet: pass a batch"):
        convert_copy_group_norm(module)
    module(images())
    convert_copy_group_norm(module)
    with copy_groups(module, (4, 5)):
        by_groups = module(images())
    assert not torch.allclose(by_groups, module(images()), atol=1e-3)


def test_norms_of_one_image_alone_need_nothing():
    module = nn.Sequential(
        nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.LayerNorm([4, 8, 8]), nn.Conv2d(4, 4, 3)
    )
    kinds = [type(part) for part in module]
    assert [type(part) for part in convert_copy_group_norm(module)] == kinds

    class Features(nn.Sequential):
        n_features = 4

    backbone = Features(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Flatten())
    assert network_of(backbone).backbone is backbone


def network_of(backbone: nn.Module) -> ClusteringNetwork:
    return ClusteringNetwork(backbone, in_channels=3, n_clusters=2, mean=(0.0,) * 3, std=(1.0,) * 3)


@pytest.mark.parametrize(
    ("converted", "left"),
    [
        ((), "stem.1 (BatchNorm2d)"),
        (("stem",), "stages.first.0.1 (BatchNormAct2d)"),
        (("stem", "stages"), "last.1 (BatchNorm1d)"),
    ],
)
def test_the_first_norm_that_would_mix_copies_is_named(converted, left):
    backbone = Own()
    for name in converted:
        convert_copy_group_norm(getattr(backbone, name))
    with pytest.raises(InputError) as caught:
        network_of(backbone)
    said = str(caught.value)
    assert f"the backbone's {left} would mix" in said
    assert "convert_copy_group_norm" in said
    assert "\n" not in said


def test_a_converted_backbone_is_taken_and_trains_both_heads():
    network = network_of(convert_copy_group_norm(Own()))
    with copy_groups(network, (4, 5)):
        network(images().abs()).assign["cluster_head"][:, 0].sum().backward()
    assert all(weight.grad is not None for weight in network.backbone.parameters())


def test_the_state_has_the_same_names_and_is_read_by_either():
    plain, converted = seeded(), convert_copy_group_norm(Own())
    assert list(converted.state_dict()) == list(plain.state_dict())
    converted.load_state_dict(plain.state_dict())
    assert torch.equal(converted.eval()(images()), plain.eval()(images()))
    back = Own()
    back.load_state_dict(converted.state_dict())
    assert torch.equal(back.eval()(images()), plain(images()))


def test_a_deep_copy_goes_by_groups_of_its_own():
    converted = convert_copy_group_norm(seeded())
    copied = deepcopy(converted)
    with copy_groups(converted, (4, 5)):
        by_groups = converted(images())
    with copy_groups(copied, (4, 5)):
        assert torch.equal(copied(images()), by_groups)
    assert not torch.allclose(copied(images()), by_groups, atol=1e-3)


def test_several_processes_are_refused_in_training_alone():
    converted = convert_copy_group_norm(seeded())
    share_statistics(converted, Processes(Launch(size=2), joined=True))
    with pytest.raises(InputError) as caught:
        converted(images())
    said = str(caught.value)
    assert "BatchNorm2d" in said
    assert "one process" in said
    assert "\n" not in said
    assert converted.eval()(images()).isfinite().all()

"""The paper's backbone: a residual network with a 3x3 stem of stride 1, for 8 to 224 pixels."""

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.backbones import Backbone
from dcdc.networks.convolution import Convolution
from dcdc.networks.copy_group_norm import CopyGroupNorm, PooledNorm

Fork = tuple[Tensor, Tensor]
"""One value for two readers, a block's first convolution and its shortcut; see CopyGroupNorm."""


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Convolution(in_channels, out_channels, 3, stride)
        self.norm1 = CopyGroupNorm(out_channels)
        self.conv2 = Convolution(out_channels, out_channels, 3)
        self.norm2 = CopyGroupNorm(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = Projection(in_channels, out_channels, stride)

    def forward(self, fork: Fork) -> Fork:
        x, x_again = fork
        inner = self.norm1(self.conv1(x))
        out: Fork = self.norm2(self.conv2(inner), residual=self.shortcut(x_again), fork=True)
        return out


class Projection(nn.Module):
    """The shortcut where a block changes the shape."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv = Convolution(in_channels, out_channels, 1, stride)
        self.norm = CopyGroupNorm(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.conv(x), relu=False)
        return out


class ResNet(nn.Module):
    """Stages of 64, 128, 256 and 512 channels; a 32-pixel image goes 32 -> 17 -> 17, 9, 5, 3."""

    def __init__(self, in_channels: int, blocks: Sequence[int], pool: bool = True) -> None:
        """Without the pool the stages see the image at its own size: better for tiny images."""
        super().__init__()
        self.n_features = 512
        self.pool = pool
        norm = PooledNorm(64) if pool else CopyGroupNorm(64)
        self.stem = nn.Sequential(Convolution(in_channels, 64, 3), norm)
        stages: list[nn.Module] = []
        width = 64
        for stage, n_blocks in enumerate(blocks):
            out_channels = 64 * 2**stage
            for block in range(n_blocks):
                stride = 2 if stage and not block else 1
                stages.append(BasicBlock(width, out_channels, stride))
                width = out_channels
        self.stages = nn.Sequential(*stages)
        self.apply(_initialise)

    def forward(self, x: Tensor) -> Tensor:
        convolution, norm = self.stem
        fork = norm(x, convolution) if self.pool else norm(convolution(x), fork=True)
        out, _ = self.stages(fork)
        return F.adaptive_avg_pool2d(out, 1).flatten(1)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


resnet34 = partial(ResNet, blocks=(3, 4, 6, 3))
resnet18 = partial(ResNet, blocks=(2, 2, 2, 2))
RESNET34, RESNET18 = Backbone(resnet34), Backbone(resnet18)
RESNET34_UNPOOLED = Backbone(partial(resnet34, pool=False))
RESNET18_UNPOOLED = Backbone(partial(resnet18, pool=False))

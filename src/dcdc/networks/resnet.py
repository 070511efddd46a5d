"""The paper's trunk: a residual network with a 3x3 stride-1 stem, for images of 8 to 224 pixels."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(in_channels, out_channels, stride)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = _conv3x3(out_channels, out_channels, 1)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        residual = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(residual + self.shortcut(x))


class ResNet(nn.Module):
    """Stages of 64, 128, 256 and 512 channels; a 32-pixel image goes 32 -> 17 -> 17, 9, 5, 3."""

    def __init__(self, in_channels: int, blocks: Sequence[int]) -> None:
        super().__init__()
        self.n_features = 512
        self.stem = nn.Sequential(
            _conv3x3(in_channels, 64, 1),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=2, stride=2, padding=1),
        )
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
        return F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1).flatten(1)


def resnet34(in_channels: int) -> ResNet:
    return ResNet(in_channels, (3, 4, 6, 3))


def resnet18(in_channels: int) -> ResNet:
    return ResNet(in_channels, (2, 2, 2, 2))


def _conv3x3(in_channels: int, out_channels: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

"""What an autoencoder of photos shall make again: images without what says little.

Most of a photo's variance is its light and colour in large areas, and a mean of squares sees little
else. Shapes: B images, C channels of mean 0 and deviation 1, H x W pixels.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LocalContrast(nn.Module):
    """The light around each pixel goes, and the contrast around it becomes the same everywhere.

    Jarrett et al., What is the best multi-stage architecture for object recognition?, 2009. Light
    is the mean over channels; what colour differs from it stays.
    """

    def __init__(self, deviation: float = 2.0, least: float = 0.15) -> None:
        """`deviation` of the Gaussian around a pixel; contrast far below `least` stays low."""
        super().__init__()
        self.reach, self.least = round(2 * deviation), least
        line = torch.exp(-(torch.arange(-self.reach, self.reach + 1.0) ** 2) / 2 / deviation**2)
        line /= line.sum()
        self.around: Tensor
        self.register_buffer("around", line.outer(line)[None, None])

    def forward(self, images: Tensor) -> Tensor:
        centred = images - self._smooth(images.mean(dim=1, keepdim=True))
        power = self._smooth(centred.square().mean(dim=1, keepdim=True))
        return centred / (power.sqrt() + self.least)

    def _smooth(self, light: Tensor) -> Tensor:
        return F.conv2d(F.pad(light, (self.reach,) * 4, mode="reflect"), self.around)


class Whitening(nn.Module):
    """Every frequency and colour of a set at about the same power, by one filter for all places.

    ZCA, as CIFAR-10 is often shown to networks, for images whose statistics are the same
    everywhere: then it is a matrix of C x C for each frequency, whatever their size. The variance
    over the set is 1 again.
    """

    def __init__(self, spectrum: Tensor, floor: float = 1e-3) -> None:
        """`spectrum` as `cross_spectrum`; below `floor` of its largest power is mostly noise."""
        super().__init__()
        powers, axes = torch.linalg.eigh(spectrum)
        gains = (powers + floor * powers.max()).rsqrt()
        left = (gains.square() * powers).mean().sqrt()
        by_frequency = axes @ torch.diag_embed(gains / left).to(axes.dtype) @ axes.mH
        self.by_frequency: Tensor
        self.register_buffer("by_frequency", by_frequency.to(torch.complex64))

    def forward(self, images: Tensor) -> Tensor:
        waves = torch.fft.fft2(images.float(), norm="ortho")
        waves = torch.einsum("hwcd,bdhw->bchw", self.by_frequency, waves)
        evened: Tensor = torch.fft.ifft2(waves, norm="ortho").real
        return evened


def cross_spectrum(batches: Iterable[Tensor]) -> Tensor:
    """H x W x C x C: how strong each frequency is in each channel, and how alike in any two."""
    total, n = torch.zeros(()), 0
    for images in batches:
        waves = torch.fft.fft2(images.double(), norm="ortho")
        total = total + torch.einsum("bchw,bdhw->hwcd", waves, waves.conj())
        n += len(images)
    return total / n

"""Convolutional sparse coding: images as sums of filters laid where a few maps say.

Zeiler et al., Deconvolutional networks, 2010. Shapes: B images, C channels, S pixels a side, F
filters.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WholeContrast(nn.Module):
    """Every image's channels to mean 0, the image to deviation 1: light says little."""

    def forward(self, images: Tensor) -> Tensor:
        centred = images - images.mean(dim=(2, 3), keepdim=True)
        deviation = centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
        return centred / (deviation + 0.05)


class SparseCoder(nn.Module):
    """One layer of a deconvolutional network. Codes are found by iterated shrinkage with momentum:
    FISTA (Beck and Teboulle, 2009)."""

    def __init__(
        self,
        in_channels: int,
        n_filters: int,
        side: int,
        *,
        sparsity: float,
        n_iterations: int,
        evened: nn.Module | None = None,
    ) -> None:
        """Filters of `side` x `side` pixels; `sparsity` is what a code's unit costs; `evened` makes
        images of even contrast, by default each as a whole."""
        super().__init__()
        assert side % 2, side
        self.evened = WholeContrast() if evened is None else evened
        self.padding = side // 2
        self.sparsity, self.n_iterations = sparsity, n_iterations
        self.filters = nn.Parameter(torch.randn(n_filters, in_channels, side, side))
        self.constrain()

    @torch.no_grad()
    def constrain(self) -> None:
        """Every filter to mean 0 in each channel, and to length 1. Else one would turn towards a
        constant, which most of a photo is, and all would grow, and codes shrink to cost nothing."""
        self.filters.sub_(self.filters.mean(dim=(2, 3), keepdim=True))
        lengths = self.filters.flatten(1).norm(dim=1).clamp_min(1e-8)
        self.filters.div_(lengths.view(-1, 1, 1, 1))

    @torch.no_grad()
    def codes(self, x: Tensor) -> Tensor:
        """B x F x S x S: what makes the objective of `x` small."""
        rate = 1 / self._steepest(x.shape[-1])
        codes = ahead = x.new_zeros(len(x), len(self.filters), *x.shape[2:])
        momentum = 1.0
        for _ in range(self.n_iterations):
            error = x - self.made(ahead)
            moved = ahead + rate * F.conv2d(error, self.filters, padding=self.padding)
            found = _shrunk(moved, self.sparsity * rate)
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = found + (momentum - 1) / following * (found - codes)
            codes, momentum = found, following
        return codes

    def made(self, codes: Tensor) -> Tensor:
        """B x C x S x S"""
        return F.conv_transpose2d(codes, self.filters, padding=self.padding)

    def objective(self, x: Tensor, codes: Tensor) -> Tensor:
        """B: half the squared error of each image, and what its codes cost."""
        error = (x - self.made(codes)).square().flatten(1).sum(1) / 2
        return error + self.sparsity * codes.abs().flatten(1).sum(1)

    def features(self, images: Tensor, grid: int) -> Tensor:
        """How strong each filter is in each field of a grid: B x (2 F grid grid), dark and light
        apart."""
        codes = self.codes(self.evened(images))
        signed = torch.cat([codes.relu(), (-codes).relu()], dim=1)
        return F.adaptive_avg_pool2d(signed, grid).flatten(1)

    def _steepest(self, side: int) -> Tensor:
        """The squared error's largest curvature, or a little more: that of the filters' spectra,
        frequency by frequency."""
        spectra = torch.fft.rfft2(self.filters, s=(side + self.padding * 2,) * 2)
        products = torch.einsum("fchw,fdhw->hwcd", spectra, spectra.conj())
        curvatures: Tensor = torch.linalg.eigvalsh(products)
        return curvatures.max()


def _shrunk(codes: Tensor, by: Tensor) -> Tensor:
    return codes.sign() * (codes.abs() - by).relu()

"""Convolutional sparse coding: images as sums of filters laid where a few maps say.

Zeiler et al., Deconvolutional networks, 2010. Shapes: B images, C channels, S pixels a side, F
filters.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SparseCoder(nn.Module):
    """One layer of a deconvolutional network; its codes are found by iterated shrinkage (ISTA)."""

    def __init__(
        self, in_channels: int, n_filters: int, side: int, *, sparsity: float, n_iterations: int
    ) -> None:
        """Filters of `side` x `side` pixels; `sparsity` is what a code's unit costs."""
        super().__init__()
        assert side % 2, side
        self.padding = side // 2
        self.sparsity, self.n_iterations = sparsity, n_iterations
        self.filters = nn.Parameter(torch.randn(n_filters, in_channels, side, side))
        self.shorten()

    @torch.no_grad()
    def shorten(self) -> None:
        """Filters to length 1: else they would grow, and codes shrink to cost nothing."""
        lengths = self.filters.flatten(1).norm(dim=1).clamp_min(1e-8)
        self.filters.div_(lengths.view(-1, 1, 1, 1))

    def contrast(self, images: Tensor) -> Tensor:
        """Every image's channels to mean 0, the image to deviation 1: light says little."""
        centred = images - images.mean(dim=(2, 3), keepdim=True)
        deviation = centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
        return centred / (deviation + 0.05)

    @torch.no_grad()
    def codes(self, x: Tensor) -> Tensor:
        """B x F x S x S: towards what best makes `x` of the filters at the least cost.

        The more iterations, the more of them are 0; ten leave most of a photo's as they are.
        """
        rate = 1 / self._steepest(x.shape[-1])
        codes = x.new_zeros(len(x), len(self.filters), *x.shape[2:])
        for _ in range(self.n_iterations):
            error = x - self.made(codes)
            codes = codes + rate * F.conv2d(error, self.filters, padding=self.padding)
            codes = _shrunk(codes, self.sparsity * rate)
        return codes

    def made(self, codes: Tensor) -> Tensor:
        """B x C x S x S"""
        return F.conv_transpose2d(codes, self.filters, padding=self.padding)

    def features(self, images: Tensor, grid: int) -> Tensor:
        """How strong each filter is in each field of a grid: B x (2 F grid grid), dark and light
        apart."""
        codes = self.codes(self.contrast(images))
        signed = torch.cat([codes.relu(), (-codes).relu()], dim=1)
        return F.adaptive_avg_pool2d(signed, grid).flatten(1)

    def _steepest(self, side: int) -> Tensor:
        """A bound on the squared error's curvature, by the filters' spectra."""
        spectra = torch.fft.rfft2(self.filters, s=(side + self.padding * 2,) * 2).abs().square()
        bound: Tensor = spectra.sum(dim=(0, 1)).max()
        return bound


def _shrunk(codes: Tensor, by: Tensor) -> Tensor:
    return codes.sign() * (codes.abs() - by).relu()

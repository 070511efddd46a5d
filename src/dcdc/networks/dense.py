"""The dense layer of trunks and heads."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_FEWEST_ROWS = 16


class Dense(nn.Linear):
    """As nn.Linear; in evaluation a row's answer is the same, bit for bit, whatever is beside it.

    A product of few rows adds up in another order than one of many, so a few are made many.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.compiler.is_compiling() or len(x) >= _FEWEST_ROWS:
            return super().forward(x)
        return super().forward(F.pad(x, (0, 0, 0, _FEWEST_ROWS - len(x))))[: len(x)]

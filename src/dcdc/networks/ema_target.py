"""An EMA target: a copy of a network whose weights are a moving average of the network's.

BYOL's target (Grill et al., Bootstrap your own latent, 2020). It is never trained itself.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn


class EmaTarget(nn.Module):
    """Its weights are buffers, so that checkpoints have them and optimisers do not."""

    def __init__(self, followed: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(followed)
        for module in self.network.modules():
            for name, weight in list(module.named_parameters(recurse=False)):
                delattr(module, name)
                module.register_buffer(name, weight.detach())

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y: Tensor = self.network(x)
        return y

    @torch.no_grad()
    def follow(self, followed: nn.Module, momentum: float) -> None:
        """Every weight becomes `momentum` of itself and `1 - momentum` of the network's."""
        own = dict(self.network.named_buffers())
        weights = dict(followed.named_parameters())
        torch._foreach_lerp_([own[name] for name in weights], list(weights.values()), 1 - momentum)

    @torch.no_grad()
    def catch_up(self, followed: nn.Module) -> None:
        """The same weights and statistics, here and now."""
        self.network.load_state_dict(followed.state_dict())

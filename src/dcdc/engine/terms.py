"""Means of the loss terms over an epoch, kept on the device so that no step waits for the host."""

import torch
from torch import Tensor

from dcdc.errors import TrainingError


class EpochTerms:
    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def add(self, terms: dict[str, Tensor]) -> None:
        for name, term in terms.items():
            self.sums[name] = self.sums[name] + term if name in self.sums else _widest(term)
            self.counts[name] = self.counts.get(name, 0) + 1

    def means(self) -> dict[str, float]:
        """Waits for the device."""
        return {name: total.item() / self.counts[name] for name, total in self.sums.items()}

    def require_finite(self, epoch: int) -> None:
        """Raises with the name of what went wrong; a sum once not finite stays so."""
        bad = [name for name, total in self.sums.items() if not torch.isfinite(total)]
        if not bad:
            return
        terms = [name for name in bad if name != "loss"] or bad
        if len(terms) == len(self.sums) - 1:
            cause = "every term, so the weights themselves have diverged"
        else:
            cause = ", ".join(terms)
        raise TrainingError(f"the loss is not finite in epoch {epoch} ({cause})")


def _widest(term: Tensor) -> Tensor:
    return term.float() if term.device.type == "mps" else term.double()  # MPS has no float64

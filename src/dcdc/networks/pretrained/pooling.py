"""One feature vector for each image, of whatever a module returns."""

from typing import Any

from torch import Tensor

from dcdc.errors import InputError


def pooled(output: Any, where: str) -> Tensor:
    """B x D of B x D, of tokens B x T x D, of a map B x D x H x W, or of what transformers' models
    return."""
    if not isinstance(output, Tensor):
        own = getattr(output, "pooler_output", None)
        if own is not None:
            return pooled(own, where)
        output = getattr(output, "last_hidden_state", output)
    if not isinstance(output, Tensor):
        raise InputError(
            f"{where} returns a {type(output).__name__}: it must return one tensor of features, "
            "B x D"
        )
    if output.dim() == 4:
        return output.mean((2, 3))
    if output.dim() == 3:
        return output.mean(1)
    if output.dim() != 2:
        raise InputError(f"{where} returns {output.dim()} axes, not features B x D")
    return output

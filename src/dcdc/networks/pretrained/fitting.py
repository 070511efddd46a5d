"""How a network of others fits in: three channels go in, a feature vector of each image comes out,
and a state dict finds its places, or is told in one line not to fit."""

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor, nn

from dcdc.errors import InputError


def load_fitting(
    module: nn.Module, state: Mapping[str, Tensor], *, origin: str, optional: Collection[str] = ()
) -> None:
    """Every weight of the module must be there in its shape; `optional` ones may be left over,
    by name or, ending in a dot, by prefix."""
    own = module.state_dict()
    for name, tensor in own.items():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in state:
            raise _misfit(origin, f"it has no {name} ({_shape(tensor)})")
        if state[name].shape != tensor.shape:
            shapes = f"{_shape(state[name])} where the backbone has {_shape(tensor)}"
            raise _misfit(origin, f"its {name} is {shapes}")
    left_over = [name for name in state if name not in own and not _is_optional(name, optional)]
    if left_over:
        raise _misfit(origin, f"its {left_over[0]} has no place in the backbone")
    module.load_state_dict({name: state.get(name, own[name]) for name in own})


def trunk_of(module: nn.Module) -> nn.Module:
    """The network of others inside a backbone of ours."""
    trunk = module.trunk
    assert isinstance(trunk, nn.Module)
    return trunk


def _is_optional(name: str, optional: Collection[str]) -> bool:
    return any(name.startswith(each) if each.endswith(".") else name == each for each in optional)


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a scalar"


def _misfit(origin: str, why: str) -> InputError:
    return InputError(f"the weights of {origin} do not fit: {why}")


def require_grey_or_rgb(in_channels: int, name: str) -> None:
    if in_channels not in (1, 3):
        raise InputError(
            f"the pretrained backbone {name} reads grey or RGB images, not {in_channels} channels",
            remedy="take images of 1 or 3 channels without {network.sobel}",
        )


class AsRGB(nn.Module):
    """B x 1 x H x W or B x 3 x H x W to B x 3 x H x W; grey is repeated, without a copy."""

    def forward(self, x: Tensor) -> Tensor:
        return x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x


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

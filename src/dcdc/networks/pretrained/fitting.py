"""Puts a state dict into a module, or says in one line what does not fit."""

from collections.abc import Collection, Mapping

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


def _is_optional(name: str, optional: Collection[str]) -> bool:
    return any(name.startswith(each) if each.endswith(".") else name == each for each in optional)


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a scalar"


def _misfit(origin: str, why: str) -> InputError:
    return InputError(f"the weights of {origin} do not fit: {why}")

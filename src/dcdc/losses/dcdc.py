"""The loss of the paper: sample view plus class view, each with a weight."""

from typing import NamedTuple

from torch import Tensor

from dcdc.losses.balance import balance_loss
from dcdc.losses.class_view import class_view_loss
from dcdc.losses.sample_view import sample_view_loss


class DcdcLoss(NamedTuple):
    total: Tensor
    terms: dict[str, Tensor]
    """Each term before its weight, by name; terms that weigh nothing are left out."""


def dcdc_loss(
    assign: Tensor,
    assign_perturbed: Tensor,
    temperature: float = 0.5,
    *,
    sample_weight: float = 1.0,
    class_weight: float = 1.0,
    balance_weight: float = 0.0,
    spare_siblings: bool = False,
) -> DcdcLoss:
    """The weighted sum and its named terms; one view alone is a weight of zero for the other."""
    terms: dict[str, Tensor] = {}
    if sample_weight:
        terms["sample_view"] = sample_view_loss(
            assign, assign_perturbed, temperature, spare_siblings=spare_siblings
        )
    if class_weight:
        terms["class_view"] = class_view_loss(assign, assign_perturbed, temperature)
    if balance_weight:
        terms["balance"] = balance_loss(assign)
    if not terms:
        raise ValueError("all loss weights are zero: give at least one term a weight")
    weights = {
        "sample_view": sample_weight,
        "class_view": class_weight,
        "balance": balance_weight,
    }
    total = sum(weights[name] * term for name, term in terms.items())
    assert isinstance(total, Tensor)
    return DcdcLoss(total, terms)

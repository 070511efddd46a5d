"""The loss of IIC, named as DCDC's is, so that one step takes either."""

from torch import Tensor

from dcdc.losses.dcdc import DcdcLoss
from dcdc.losses.mutual_information import mutual_information


def iic_loss(assign: Tensor, assign_perturbed: Tensor) -> DcdcLoss:
    """Lower is better: the mutual information with its sign turned."""
    loss = -mutual_information(assign, assign_perturbed)
    return DcdcLoss(loss, {"mutual_information": loss})

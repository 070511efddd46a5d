"""Pure functions of assignments: the two contrastive views, the balance term and their sum."""

from dcdc.losses.affinity import class_affinity, sample_affinity
from dcdc.losses.balance import balance_loss
from dcdc.losses.class_view import class_view_loss
from dcdc.losses.dcdc import DcdcLoss, dcdc_loss
from dcdc.losses.sample_view import sample_view_loss

__all__ = [
    "DcdcLoss",
    "balance_loss",
    "class_affinity",
    "class_view_loss",
    "dcdc_loss",
    "sample_affinity",
    "sample_view_loss",
]

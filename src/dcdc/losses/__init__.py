"""Pure functions of assignments and projections: the two contrastive views, balance, and others."""

from dcdc.losses.adversarial import discriminator_loss, generator_loss
from dcdc.losses.affinity import class_affinity, sample_affinity
from dcdc.losses.balance import balance_loss
from dcdc.losses.class_view import class_view_loss
from dcdc.losses.dcdc import DcdcLoss, dcdc_loss
from dcdc.losses.gaussian_divergence import gaussian_divergence
from dcdc.losses.iic import iic_loss
from dcdc.losses.instance import instance_loss
from dcdc.losses.mutual_information import joint_assignment, mutual_information
from dcdc.losses.prediction import prediction_loss
from dcdc.losses.reconstruction import reconstruction_loss
from dcdc.losses.sample_view import sample_view_loss
from dcdc.losses.self_label import self_label_loss
from dcdc.losses.self_training import sharpened_target, student_assignment, target_divergence

__all__ = [
    "DcdcLoss",
    "balance_loss",
    "class_affinity",
    "class_view_loss",
    "dcdc_loss",
    "discriminator_loss",
    "gaussian_divergence",
    "generator_loss",
    "iic_loss",
    "instance_loss",
    "joint_assignment",
    "mutual_information",
    "prediction_loss",
    "reconstruction_loss",
    "sample_affinity",
    "sample_view_loss",
    "self_label_loss",
    "sharpened_target",
    "student_assignment",
    "target_divergence",
]

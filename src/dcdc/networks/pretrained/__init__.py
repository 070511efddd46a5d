"""Backbones whose weights others trained: one file for each origin."""

from dcdc.networks.pretrained.available import Available, describe_available
from dcdc.networks.pretrained.folding import frozen_for_inference

__all__ = ["Available", "describe_available", "frozen_for_inference"]

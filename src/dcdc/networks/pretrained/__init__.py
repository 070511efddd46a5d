"""Backbones whose weights others trained: one file for each origin."""

from dcdc.networks.pretrained.folding import frozen_for_inference

__all__ = ["frozen_for_inference"]

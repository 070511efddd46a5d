"""Backbones whose weights others trained: one file for each origin."""

from dcdc.networks.pretrained.folding import frozen_for_inference
from dcdc.networks.pretrained.kept_files import keep_files, public_spec, spec_of_kept

__all__ = [
    "frozen_for_inference",
    "keep_files",
    "public_spec",
    "spec_of_kept",
]

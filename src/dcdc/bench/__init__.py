"""How fast training steps and perturbations are on this machine."""

PARTS = ("steps", "perturbations")

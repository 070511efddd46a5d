"""The phases of a training, one file each: features first, then the heads, then pseudo-labels."""

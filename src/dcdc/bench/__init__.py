"""How fast the engine is: as ratios in one run, to the reference's way and to measured floors."""

PARTS = ("steps", "augment", "store", "reference", "floors")

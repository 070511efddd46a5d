"""What the engine is held against: the reference's way to run a preset, and measured floors."""

"""The training step, the trainer, assignment, checkpoints and history."""

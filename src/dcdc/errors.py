"""The errors a person can mend: the faces show them as one line."""


class InputError(ValueError):
    """Wrong use or bad input: the message says what, where and how to fix it. Exit code 2."""


class Interrupted(Exception):  # noqa: N818 - nothing went wrong
    """A signal asked training to stop; its state is saved."""

    def __init__(self, signal: str, epoch: int) -> None:
        super().__init__(f"stopped by {signal} after {epoch} epochs")
        self.signal = signal


class TrainingError(RuntimeError):
    """Training cannot go on (a loss that is not finite, say); what was saved stays. Exit code 1."""


class PeerLostError(RuntimeError):
    """Another process of the same training is gone; what was saved stays. Exit code 1."""

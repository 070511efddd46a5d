"""Whether a kernel of our own can be built here."""

import warnings
from collections.abc import Callable


def can_build(name: str, launch: Callable[[], object]) -> bool:
    """One small launch tells: Triton needs a C compiler too, which a slim image may lack."""
    try:
        launch()
    except Exception as fault:  # whatever Triton's compiler and linker raise
        reason = " ".join(str(fault).split())
        message = f"{name} cannot be built ({reason}); a slower one does its work"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return False
    return True

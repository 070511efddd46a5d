"""Where downloads and decoded images are kept: `DCDC_DATA`, or the user's cache folder."""

import os
from pathlib import Path

VARIABLE = "DCDC_DATA"


def cache_folder() -> Path:
    """`downloads/` holds the benchmarks' files, `decoded/` images brought to their size."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("dcdc")

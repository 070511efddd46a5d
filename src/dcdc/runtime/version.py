"""Which dcdc runs."""

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    try:
        return version("dcdc")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"

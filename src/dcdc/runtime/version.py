"""Which dcdc runs, and beside what."""

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    return version_of("dcdc")


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"

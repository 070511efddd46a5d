"""The files that a prediction is to write: their names, and that nothing holds them yet."""

from pathlib import Path

from dcdc.errors import InputError

SUFFIXES = (".csv", ".parquet", ".jsonl")


def work_path(out: Path) -> Path:
    """Visible, since a person may want to remove it."""
    return out.with_name(f"{out.name}.partial")


def done_path(out: Path) -> Path:
    """What the work is called once every file is in its place, while it is removed."""
    return out.with_name(f".{out.name}.done")


def skipped_path(out: Path) -> Path:
    return out.with_suffix(".skipped.csv")


def check_names(out: Path, features: Path | None) -> None:
    if out.suffix not in SUFFIXES:
        raise InputError("must end in .csv, .parquet or .jsonl", parameter="out", value=str(out))
    if features is not None and features.suffix != ".npy":
        raise InputError("must end in .npy", parameter="features", value=str(features))


def refuse_existing(out: Path, features: Path | None) -> None:
    if out.exists():
        raise InputError(f"{out} exists", remedy="choose another {out}")
    if features is not None and features.exists():
        raise InputError(f"{features} exists", remedy="choose other {features}")

"""The counts as a table, and its place on a page."""

from collections.abc import Iterable
from pathlib import Path

from campaign.families import FAMILIES, Family, Found

_HEAD = "| family | what | number | clean | failures |\n|---|---|---:|---:|---:|"
_BEGIN, _END = "<!-- counts -->", "<!-- end of counts -->"


def table_of(rows: Iterable[str]) -> str:
    return "\n".join([_HEAD, *rows])


def row_of(family: Family, found: Found) -> str:
    failures = len(found.faults)
    numbers = f"{found.n:,} {family.unit} | {found.n - failures:,} | {failures:,}"
    return f"| {family.name} | {family.what} | {numbers} |"


def write_rows(page: Path, rows: dict[str, str]) -> None:
    """Of the families that were run; those of the others stay."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    table, _, after = rest.partition(_END)
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()}
    kept |= rows
    whole = table_of(kept[name] for name in FAMILIES if name in kept)
    page.write_text(f"{before}{_BEGIN}\n{whole}\n{_END}{after}", encoding="utf-8")

"""The counts as a table, and its place on a page."""

from pathlib import Path

from campaign.families import Family, Found


def table_of(counts: list[tuple[Family, Found]]) -> str:
    lines = ["| family | what | number | clean | failures |", "|---|---|---:|---:|---:|"]
    lines += [row_of(family, found) for family, found in counts]
    return "\n".join(lines)


def row_of(family: Family, found: Found) -> str:
    failures = len(found.faults)
    numbers = f"{found.n:,} {family.unit} | {found.n - failures:,} | {failures:,}"
    return f"| {family.name} | {family.what} | {numbers} |"


_BEGIN, _END = "<!-- counts -->", "<!-- end of counts -->"


def write_table(page: Path, table: str) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    page.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", encoding="utf-8")

"""What was measured, as a table: a line for each row, under its preset or part."""

from collections.abc import Sequence

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from dcdc.bench.rows import Row

_WIDEST_NAME = 60


def row_table(rows: Sequence[Row]) -> Table:
    titles = ["", "ms", "n", "spread", "images/s", "copies/s", "warm-up"]
    if any(row.measured and row.measured.peak_gpu_bytes for row in rows):
        titles.append("GPU memory")
    table = table_of(titles)
    above = None
    for row in rows:
        if (row.preset or row.part) != above:
            above = row.preset or row.part
            table.add_row(above)
        table.add_row(*_cells(row)[: len(titles)])
    return table


def table_of(titles: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(titles[0], max_width=_WIDEST_NAME)
    for title in titles[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _cells(row: Row) -> list[str | Text]:
    measured = row.measured
    if measured is None:
        return [Text(f"  {row.name}\n  not possible: {row.not_possible}")]
    remarks = [line for key in ("warnings", "remarks") for line in measured.details.get(key, ())]
    timing, memory = measured.timing, measured.peak_gpu_bytes
    return [
        Text("\n".join(f"  {line}" for line in (row.name, *remarks))),
        f"{timing.ms:,.3f}",
        f"{timing.n_blocks} x {timing.calls_per_block}",
        f"{timing.spread:.2f}",
        *(
            f"{measured.per_second(n):,.0f}" if n else ""
            for n in (measured.images, measured.copies)
        ),
        f"{timing.warm_up_seconds:.1f} s",
        decimal(memory) if memory else "",
    ]

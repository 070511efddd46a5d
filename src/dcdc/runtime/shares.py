"""Who takes what: contiguous shares of rows, whose sizes differ by one at most."""


def share(n_rows: int, rank: int, size: int) -> slice:
    """The first `n_rows % size` processes take one row more."""
    each, left = divmod(n_rows, size)
    start = rank * each + min(rank, left)
    return slice(start, start + each + (rank < left))


def share_sizes(n_rows: int, size: int) -> list[int]:
    """Largest first."""
    each, left = divmod(n_rows, size)
    return [each + 1] * left + [each] * (size - left)

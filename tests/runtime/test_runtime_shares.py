import pytest

from dcdc.runtime.shares import share, share_sizes


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 17, 18, 50])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_shares_cover_all_rows_once_in_order_and_differ_by_one_at_most(n_rows, size):
    rows = list(range(n_rows))
    shares = [rows[share(n_rows, rank, size)] for rank in range(size)]
    assert [row for own in shares for row in own] == rows
    assert [len(own) for own in shares] == share_sizes(n_rows, size)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1

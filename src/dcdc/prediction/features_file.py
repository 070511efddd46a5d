"""The first bytes of a `.npy` file of features, of one length whatever the number of rows."""

_LENGTH = 128


def npy_header(n_rows: int, n_features: int) -> bytes:
    """Of N x D float32, format 1.0: rows can be appended before their number is known."""
    layout = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n_rows}, {n_features}), }}"
    start = b"\x93NUMPY\x01\x00" + (_LENGTH - 10).to_bytes(2, "little")
    return start + layout.encode().ljust(_LENGTH - len(start) - 1) + b"\n"

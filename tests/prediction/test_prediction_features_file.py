import io

import numpy as np

from dcdc.prediction.features_file import npy_header


def test_numpy_reads_it_whatever_the_number_of_rows():
    for n_rows in (0, 1, 12):
        values = np.arange(n_rows * 3, dtype="<f4").reshape(n_rows, 3)
        file = io.BytesIO(npy_header(n_rows, 3) + values.tobytes())
        assert np.array_equal(np.load(file), values)
    assert len({len(npy_header(n, d)) for n in (0, 10**12) for d in (1, 4096)}) == 1

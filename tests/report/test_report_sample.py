import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.report.sample import read_sample


def test_a_run_without_a_sample_has_none(make_facts, write_run, tmp_path):
    assert read_sample(write_run(tmp_path / "run", make_facts([0, 1], n_clusters=2))) is None


def test_a_sample_comes_back_as_written(make_facts, write_run, make_sample, tmp_path):
    folder = write_run(tmp_path / "run", make_facts([0, 1, 1, 0], n_clusters=3))
    written = make_sample([0, 1, 1, 0], n_clusters=3)
    folder.write_sample({**vars(written), "features": written.features.astype(np.float16)})
    sample = read_sample(folder)
    assert sample is not None
    assert sample.features.dtype == np.float32
    for name, array in vars(written).items():
        assert np.allclose(getattr(sample, name), array, atol=0.01), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": None}, "it has no rows"),
        ({"rows": np.array([0, 1, 2, 9])}, "not rising positions among 4"),
        ({"rows": np.array([0, 2, 1, 3])}, "not rising"),
        ({"rows": np.zeros((2, 2), int)}, "rows are not positions"),
        ({"view_rows": np.array([], int)}, "view_rows are not positions"),
        ({"assign": np.ones((4, 7), np.float32)}, r"assign has shape \(4, 7\)"),
        ({"features": np.float16(3)}, "features has shape"),
        ({"features": np.full((4, 2), np.nan, np.float16)}, "not finite"),
        ({"view_assign": np.ones((4, 3), int)}, "view_assign"),
    ],
)
def test_a_file_that_does_not_fit_the_run_is_one_line(
    make_facts, write_run, make_sample, tmp_path, change, message
):
    folder = write_run(tmp_path / "run", make_facts([0, 1, 1, 0], n_clusters=3))
    arrays = vars(make_sample([0, 1, 1, 0], n_clusters=3)) | change
    folder.write_sample({name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=message) as told:
        read_sample(folder)
    assert "sample.npz" in str(told.value)
    assert "remove it" in str(told.value)
    assert len(str(told.value).splitlines()) == 1


def test_a_damaged_file_is_one_line(make_facts, write_run, tmp_path):
    folder = write_run(tmp_path / "run", make_facts([0, 1], n_clusters=2))
    folder.sample_file.write_bytes(b"PK\x03\x04torn")
    with pytest.raises(InputError, match=r"sample.npz is damaged .*: remove it"):
        read_sample(folder)

import numpy as np
import pyarrow as pa

from dcdc.prediction.answered import LEFT_OUT, Answered, packed, unpacked

SCHEMA = pa.schema([("name", pa.string()), ("cluster", pa.int32())])


def answered(names, skipped=()):
    clusters = np.arange(len(names) + len(skipped), dtype=np.int32)
    rows = pa.RecordBatch.from_pydict(
        {"name": names, "cluster": list(range(len(names)))}, schema=SCHEMA
    )
    return Answered(rows, np.ones((len(names), 3), np.float32), clusters, tuple(skipped))


def test_what_was_packed_comes_back_in_order():
    given = [
        answered(["a.png", "\u00e4\n.png"], [(7, "cut short")]),
        answered([], [(LEFT_OUT, "x")]),
        answered(["b.png"]),
    ]
    content = b"".join(map(packed, given))
    found = list(unpacked(content, SCHEMA))
    assert len(found) == len(given)
    for mine, theirs in zip(found, given, strict=True):
        assert mine.rows.equals(theirs.rows)
        np.testing.assert_array_equal(mine.features, theirs.features)
        np.testing.assert_array_equal(mine.clusters, theirs.clusters)
        assert mine.skipped == theirs.skipped
    assert list(unpacked(b"", SCHEMA)) == []

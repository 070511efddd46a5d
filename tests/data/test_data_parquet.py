"""Parquet as `datasets` writes it: image structs of bytes and path, features in the metadata."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dcdc.cli.words import COMMAND_LINE
from dcdc.data.listing import BadImage
from dcdc.data.parquet import list_parquet
from dcdc.data.parquet_labels import label_column_of, label_columns
from dcdc.errors import InputError

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def images(*rows):
    """Rows of bytes, or of (bytes, path); None for a row that is null."""
    as_struct = [{"bytes": row, "path": None} if isinstance(row, bytes) else row for row in rows]
    pairs = [dict(zip(("bytes", "path"), row, strict=True)) if isinstance(row, tuple) else row
             for row in as_struct]  # fmt: skip
    return pa.array(pairs, STRUCT)


def numbered(n_rows, first=0):
    return images(*(b"image %d" % number for number in range(first, first + n_rows)))


def write(path, columns, features=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if features is not None:
        described = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": described})
    pq.write_table(table, path, **options)
    return path


def class_label(*names):
    return {"names": list(names), "_type": "ClassLabel"}


def refused(source, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        list(list_parquet(source, **options).encoded(0))
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def contents(listing, start=0):
    return [str(e) if isinstance(e, BadImage) else e for e in listing.encoded(start)]


@pytest.mark.parametrize("row_group_size", [1, 3, 100])
@pytest.mark.parametrize("start", [0, 1, 3, 6, 7, 9, 10])
def test_rows_of_several_files_from_any_row_on(tmp_path, row_group_size, start):
    for name, first, n_rows in [("b/x", 7, 3), ("a", 0, 0), ("b", 0, 7)]:
        path = tmp_path / f"{name}.parquet"
        write(path, {"image": numbered(n_rows, first)}, row_group_size=row_group_size)
    write(tmp_path / ".cache" / "c.parquet", {"image": numbered(9)})
    write(tmp_path / ".d.parquet", {"image": numbered(9)})
    (tmp_path / "README.md").write_text("a data set")
    found = list_parquet(tmp_path)
    assert found.where == str(tmp_path)
    assert contents(found, start) == [b"image %d" % number for number in range(start, 10)]
    assert (found.targets, found.class_names) == (None, ())


def test_batches_end_anywhere(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", {"image": numbered(23)}, row_group_size=10)
    monkeypatch.setattr("dcdc.data.parquet._MOST_ROWS", 4)
    for start in range(24):
        assert len(contents(list_parquet(path), start)) == 23 - start


def test_row_groups_before_the_start_are_not_read(tmp_path):
    path = write(tmp_path / "a.parquet", {"image": numbered(4)}, row_group_size=1)
    chunk = pq.read_metadata(path).row_group(1).column(0)
    with path.open("r+b") as file:
        file.seek(chunk.dictionary_page_offset)
        file.write(b"\xff" * chunk.total_compressed_size)
    found = list_parquet(path)
    assert contents(found, 2) == [b"image 2", b"image 3"]
    with pytest.raises(InputError, match=r"a\.parquet is no Parquet file, damaged or cut short"):
        contents(found)


def test_memory_stays_flat_in_one_big_row_group(tmp_path):
    pool, size, n_rows = pa.default_memory_pool(), 50_000, 600
    random = np.random.default_rng(0)
    columns = {"image": images(*(random.bytes(size) for _ in range(n_rows)))}
    path = write(tmp_path / "a.parquet", columns, row_group_size=n_rows, write_batch_size=8)
    del columns
    before, most = pool.bytes_allocated(), 0
    for content in list_parquet(path).encoded(0):
        assert len(content) == size
        most = max(most, pool.bytes_allocated() - before)
    assert 0 < most < size * n_rows / 3


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"image": numbered(1), "other": images(b"b")}, b"image 0"),
        ({"img": numbered(1), "other": images(b"b")}, b"image 0"),
        ({"photo": numbered(1), "raw": pa.array([b"b"])}, b"image 0"),
        ({"image": pa.array([b"plain"])}, b"plain"),
        ({"img": pa.array([b"plain"], pa.large_binary()), "photo": images(b"b")}, b"plain"),
        ({"image": pa.array([{"bytes": b"alone"}])}, b"alone"),
        ({"image": pa.array([7]), "photo": numbered(1)}, b"image 0"),
    ],
)
def test_the_image_column(tmp_path, columns, expected):
    assert contents(list_parquet(write(tmp_path / "a.parquet", columns))) == [expected]


@pytest.mark.parametrize(
    "columns",
    [
        {"a": images(b"a"), "b": images(b"b")},
        {"image": pa.array([[1, 2]]), "raw": pa.array([b"b"])},
        {"text": pa.array(["a"])},
        {"image": pa.array([{"bytes": "text", "path": "a"}])},
    ],
)
def test_no_image_column(tmp_path, columns):
    message = refused(write(tmp_path / "a.parquet", columns))
    assert "no image column" in message
    for name in columns:
        assert f"{name} (" in message


def test_a_row_without_bytes_is_the_file_beside_if_it_lies_inside(tmp_path):
    folder = tmp_path / "set"
    rows = images(
        (b"here", "here.png"),
        (None, "deep/beside.png"),
        (None, "../out.png"),
        (None, str(tmp_path / "out.png")),
        (None, "link.png"),
        (None, "gone.png"),
        (None, "deep"),
        (None, "nul\0.png"),
        (None, None),
        None,
    )
    path = write(folder / "a.parquet", {"image": rows}, row_group_size=4)
    (folder / "deep").mkdir()
    for name in ("deep/beside.png", "../out.png"):
        (folder / name).write_bytes(b"image")
    (folder / "link.png").symlink_to("../out.png")
    outside, gone = "a path or link that leads out of the folder", "no such file, or a link"
    found = contents(list_parquet(path))
    assert found[:2] == [b"here", folder / "deep" / "beside.png"]
    assert found[2:5] == [outside] * 3
    assert found[5].startswith(gone)
    assert found[6] == "not a regular file"
    assert found[7].startswith(gone)
    assert found[8:] == ["no image in this row"] * 2


def test_names_are_the_paths_where_each_row_has_its_own(tmp_path):
    def names(**files):
        for name, rows in files.items():
            write(tmp_path / f"{name.replace('__', '/')}.parquet", {"image": rows})
        return list(list_parquet(tmp_path).names)

    own = images((b"", "x/1.png"), (b"", "0.png"))
    assert names(a=own) == ["x/1.png", "0.png"]
    assert names(a=own, b=images((b"", "2.png"))) == ["x/1.png", "0.png", "2.png"]
    assert names(a=own, b=images((b"", "0.png"))) == ["a/000000", "a/000001", "b/000000"]
    assert names(a=own, b=images((b"", None))) == ["a/000000", "a/000001", "b/000000"]
    assert names(a=own, b=images((b"", ""))) == ["a/000000", "a/000001", "b/000000"]
    assert names(b=images(b""), c__a=images(b""))[2:] == ["b/000000", "c/a/000000"]


def test_class_labels_have_their_names_and_order(tmp_path):
    features = {"label": class_label("zebra", "ant", "cat", "dog")}
    for name, codes in [("a", [3, 0, 3]), ("b", [2, 0])]:
        columns = {"image": numbered(len(codes)), "label": codes}
        write(tmp_path / f"{name}.parquet", columns, features)
    found = list_parquet(tmp_path)
    assert found.class_names == ("zebra", "cat", "dog")
    assert found.targets.tolist() == [2, 0, 2, 1, 0]
    assert found.targets.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "class_names", "targets"),
    [
        (pa.array([10, -9, 10], pa.int8()), ("-9", "10"), [1, 0, 1]),
        (pa.array([2**63, 1, 1], pa.uint64()), ("1", str(2**63)), [1, 0, 0]),
        (pa.array(["b", "a", "b"]), ("a", "b"), [1, 0, 1]),
        (pa.array(["b", "a", "b"], pa.large_string()), ("a", "b"), [1, 0, 1]),
        (pa.array([True, False, True]), ("False", "True"), [1, 0, 1]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ("a", "b"), [1, 0, 1]),
        (pa.DictionaryArray.from_arrays([2, 1, 2], [5, 7, 6]), ("6", "7"), [0, 1, 0]),
    ],
)
@pytest.mark.parametrize("target", [None, "label"])
def test_labels_of_any_type(tmp_path, values, class_names, targets, target):
    path = write(tmp_path / "a.parquet", {"image": numbered(3), "label": values})
    found = list_parquet(path, target)
    assert found.class_names == class_names
    assert found.targets.tolist() == targets


@pytest.mark.parametrize(
    ("columns", "features", "candidates", "chosen"),
    [
        ({"label": [0, 1], "fine_label": [1, 1]}, {}, ["label", "fine_label"], ("0", "1")),
        ({"labels": ["x", "y"], "animal": [7, 7]}, {}, ["labels"], ("x", "y")),
        ({"fine_label": [5, 6], "n": [0, 1]}, {}, ["fine_label"], ("5", "6")),
        ({"animal": [1, 0]}, {"animal": class_label("a", "b")}, ["animal"], ("a", "b")),
        ({"animal": [1, 0]}, {"animal": {"_type": "Value"}}, [], ()),
        ({"fine_label": [0, 1], "coarse_label": [0, 1]}, {}, ["fine_label", "coarse_label"], ()),
        (
            {"fine_label": [0, 1], "animal": [0, 1]},
            {"animal": class_label("a", "b")},
            ["fine_label", "animal"],
            (),
        ),
        ({"label": [0.5, 1.0], "x_label": ["a", "b"]}, {}, ["x_label"], ("a", "b")),
        ({"label": [[1], [2]]}, {}, [], ()),
    ],
)
def test_which_column_is_the_label(tmp_path, columns, features, candidates, chosen):
    path = write(tmp_path / "a.parquet", {"image": numbered(2), **columns}, features)
    assert label_columns(path) == label_columns(tmp_path) == candidates
    found = list_parquet(path)
    assert found.class_names == chosen
    assert (found.targets is None) == (not chosen)
    for target in ("", "none"):
        assert list_parquet(path, target).targets is None
    for target in candidates:
        assert list_parquet(path, target).targets is not None


@pytest.mark.parametrize(
    ("columns", "n_classes", "expected"),
    [
        ({"fine_label": [0, 1, 2, 3], "coarse_label": [0, 0, 1, 1]}, 2, "coarse_label"),
        ({"fine_label": [0, 1, 2, 3], "coarse_label": [0, 0, 1, 1]}, 4, "fine_label"),
        ({"fine_label": [0, 1, 2, 3], "coarse_label": [0, 0, 1, 1]}, 3, None),
        ({"a_label": [0, 0, 1, 1], "b_label": [0, 1, 0, 1]}, 2, None),
        ({"a_label": [0, 0, 1, None], "b_label": [0, 1, 0, 1]}, 2, "b_label"),
        ({"label": [0, 1, 2, 3], "coarse_label": [0, 0, 1, 1]}, 2, None),
        ({"fine_label": [0, 0, 1, 1]}, 2, None),
        ({"n": [0, 0, 1, 1]}, 2, None),
    ],
)
def test_of_several_columns_the_only_one_with_so_many_classes(
    tmp_path, columns, n_classes, expected
):
    """Nothing where it is plain to see without, by name or because there is one alone."""
    for part in (slice(0, 2), slice(2, 4)):
        rows = {name: values[part] for name, values in columns.items()}
        write(tmp_path / f"{part.start}.parquet", {"image": numbered(2), **rows})
    write(
        tmp_path / "empty.parquet",
        {"image": numbered(0)} | dict.fromkeys(columns, pa.array([], pa.int64())),
    )
    assert label_column_of(tmp_path, n_classes) == expected


@pytest.mark.parametrize(
    "metadata", [b"{", b"[]", b'{"info": null}', b'{"info": {"features": []}}']
)
def test_metadata_of_another_kind_is_passed_over(tmp_path, metadata):
    table = pa.table({"image": numbered(2), "label": [4, 5]})
    pq.write_table(table.replace_schema_metadata({"huggingface": metadata}), tmp_path / "a.parquet")
    assert list_parquet(tmp_path).class_names == ("4", "5")


def test_a_target_that_is_no_label_column(tmp_path):
    columns = {"image": numbered(2), "fine_label": [0, 1], "weight": [0.5, 0.1]}
    path = write(tmp_path / "a.parquet", columns)
    message = refused(path, target="fine_labels")
    assert "did you mean 'fine_label'?" in message
    assert "image, fine_label, weight" in message
    message = refused(path, target="weight")
    assert "'weight'" in message
    assert "double" in message
    assert "(fine_label)" in message


@pytest.mark.parametrize(
    ("second", "fault"),
    [([0, None], "row 1: no label"), ([0, -1], "row 1: label -1"), ([2, 0], "row 0: label 2")],
)
def test_a_row_without_a_label_is_named(tmp_path, second, fault):
    features = {"label": class_label("a", "b")}
    for name, codes in [("one", [0, 1]), ("two", second)]:
        columns = {"image": numbered(2), "label": pa.array(codes, pa.int64())}
        write(tmp_path / f"{name}.parquet", columns, features)
    message = refused(tmp_path)
    assert f"two.parquet, {fault}" in message
    assert "--target none" in message
    assert list_parquet(tmp_path, "none").targets is None


def test_files_of_different_kinds_are_refused_by_name(tmp_path):
    write(tmp_path / "a.parquet", {"image": numbered(1), "label": [0]})
    write(tmp_path / "b.parquet", {"image": numbered(1), "label": ["x"]})
    message = refused(tmp_path)
    assert "a.parquet and " in message
    assert "b.parquet have different columns" in message
    for name, classes in [("a", ("x", "y")), ("b", ("y", "x"))]:
        columns = {"image": numbered(1), "label": [0]}
        write(tmp_path / f"{name}.parquet", columns, {"label": class_label(*classes)})
    message = refused(tmp_path)
    assert "a.parquet and " in message
    assert "b.parquet name the classes of 'label' differently" in message


@pytest.mark.parametrize("kept", [0, 3, 4, 100, -1, -9, -200])
def test_a_cut_file_is_refused(tmp_path, kept):
    path = write(tmp_path / "a.parquet", {"image": numbered(50), "label": list(range(50))})
    path.write_bytes(path.read_bytes()[:kept])
    assert "a.parquet is no Parquet file, damaged or cut short" in refused(path)
    assert "a.parquet is no Parquet file, damaged or cut short" in refused(tmp_path)


def test_wrong_use(tmp_path):
    assert "no .parquet file in folder" in refused(tmp_path)
    assert "No such file" in refused(tmp_path / "gone")
    (tmp_path / "a.parquet").write_text("hello" * 100)
    assert "is no Parquet file" in refused(tmp_path / "a.parquet")
    write(tmp_path / "a.parquet", {"image": numbered(0)})
    assert "no rows" in refused(tmp_path)


def test_a_file_that_became_shorter_after_it_was_listed(tmp_path):
    path = write(tmp_path / "a.parquet", {"image": numbered(5)})
    found = list_parquet(path)
    write(path, {"image": numbered(4)})
    with pytest.raises(InputError, match="changed while it was read"):
        contents(found)


def held_files():
    return [file.resolve() for file in Path("/proc/self/fd").iterdir()]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are not shown here")
def test_a_reader_that_stops_early_leaves_no_file_open(tmp_path):
    path = write(tmp_path / "a.parquet", {"image": numbered(50)})
    reading = list_parquet(path).encoded(3)
    next(reading)
    assert path in held_files()
    reading.close()
    assert path not in held_files()


def test_a_linked_file_is_read(tmp_path):
    path = write(tmp_path / "blobs" / "0123", {"image": numbered(2)})
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "train.parquet").symlink_to(path)
    assert len(list_parquet(tmp_path / "snapshot")) == 2


def test_the_fingerprint_is_of_the_images_alone(tmp_path):
    rows = images((b"a", "1.png"), (None, "2.png"))
    time = 10**18

    def fingerprint(target=None, **columns):
        path = write(tmp_path / "a.parquet", columns)
        os.utime(path, ns=(time, time))
        return list_parquet(path, target).fingerprint

    first = fingerprint(image=rows, label=[0, 1])
    assert fingerprint(image=rows, label=[0, 1]) == first
    assert fingerprint("none", image=rows, label=[0, 1]) == first
    assert fingerprint(image=rows, label=[0, 1], extra=[1, 2]) != first
    assert fingerprint(image=images((b"b", "1.png"), (None, "2.png")), label=[0, 1]) != first
    (tmp_path / "2.png").write_bytes(b"image")
    beside = fingerprint(image=rows, label=[0, 1])
    assert beside != first
    (tmp_path / "2.png").write_bytes(b"another")
    assert fingerprint(image=rows, label=[0, 1]) != beside
    (tmp_path / "2.png").unlink()
    assert fingerprint(image=rows, label=[0, 1]) == first
    time += 1
    assert fingerprint(image=rows, label=[0, 1]) != first

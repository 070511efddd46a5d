import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import load_data, load_images, vector_parquet, vector_rows
from dcdc.errors import InputError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(12, 5)).astype(np.float32)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mapping(monkeypatch, tmp_path):
    """Everything counts as large."""
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(vector_rows, "MAP_ABOVE_BYTES", 0)
    monkeypatch.setattr(vector_parquet, "_BATCH_BYTES", 3 * 5 * 8)  # three rows


def refused(source, load=load_data, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        load(source, **options)
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def lists(rows, kind=None):
    return pa.array(list(rows), kind or pa.list_(pa.float32()))


def write(to="a.parquet", row_group_size=None, /, **columns):
    pq.write_table(pa.table(columns), to, row_group_size=row_group_size, write_page_checksum=True)


KINDS = [
    pa.list_(pa.float32()),
    pa.large_list(pa.float32()),
    pa.list_(pa.float32(), 5),
    pa.list_(pa.float64()),
    pa.list_(pa.float64(), 5),
    pa.list_(pa.float16()),
    pa.list_(pa.float16(), 5),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("large", [False, True])
def test_every_type_of_list(here, request, kind, large):
    if large:
        request.getfixturevalue("mapping")
    half = pa.types.is_float16(kind.value_type)
    rows = ROWS.astype(kind.value_type.to_pandas_dtype())
    write("a.parquet", 5, emb=lists(rows, kind))
    for _ in range(2):  # built, then found
        found = load_data("a.parquet")
        assert found.vectors.dtype == (np.float16 if half else np.float32)
        assert np.array_equal(found.vectors, rows.astype(found.vectors.dtype))
        assert found.names[0] == "image-0000"
        assert found.files is found.targets is None
    assert (here / "cache").exists() == large


def test_labels_and_paths_go_with_the_vectors(here):
    paths = [f"photos/{row}.jpg" for row in range(12)]
    write(label=["b", "a"] * 6, caption=["text"] * 12, where=paths, emb=lists(ROWS))
    found = load_data("a.parquet")
    assert found.class_names == ("a", "b")
    assert found.targets.tolist() == [1, 0] * 6
    assert list(found.names) == paths
    assert found.files[1] == here / "photos" / "1.jpg"
    assert load_data("a.parquet", target="none").targets is None
    assert load_data("a.parquet", target="caption").class_names == ("text",)
    assert "no column 'lable': did you mean 'label'?" in refused("a.parquet", target="lable")


def test_a_column_may_have_dots_in_its_name():
    table = {"model.emb": lists(ROWS), "model": list(range(12))}
    write("a.parquet", 5, **table)
    assert np.array_equal(load_data("a.parquet").vectors, ROWS)


def test_a_known_name_tells_the_files_and_the_names(here):
    files = ["no-extension"] * 12
    ids = [f"id{row}" for row in range(12)]
    write(emb=lists(ROWS), Image=files, id=ids, other=["a.jpg"] * 12)
    found = load_data("a.parquet")
    assert list(found.names) == ids
    assert found.files[0] == here / "no-extension"
    write(emb=lists(ROWS), file=pa.array(ids).dictionary_encode())
    assert load_data("a.parquet").files[3] == here / "id3"
    write(emb=lists(ROWS), path=["a.jpg", *[None] * 11])
    assert load_data("a.parquet").files is None
    write(emb=lists(ROWS), a=["a.jpg"] * 12, b=["b.jpg"] * 12)
    assert load_data("a.parquet").files is None


def test_a_folder_of_shards_in_their_order(here, request):
    (here / "hub" / "data").mkdir(parents=True)
    for number in range(3):
        some = ROWS[4 * number : 4 * number + 4]
        names = [f"{number}-{row}.png" for row in range(4)]
        write(f"hub/data/{number}.parquet", 3, emb=lists(some), file=names, label=[number] * 4)
    for large in (False, True):
        if large:
            request.getfixturevalue("mapping")
        found = load_data("hub")
        assert np.array_equal(found.vectors, ROWS)
        assert found.class_names == ("0", "1", "2")
        assert found.files[5] == (here / "hub" / "data" / "1-1.png").resolve()
    (here / "hub" / "data" / "2.parquet").rename(here / "hub" / "2.parquet")
    found = load_data("hub")  # the last one's paths lie elsewhere now
    assert found.files[0] == (here / "hub" / "2-0.png").resolve()
    assert found.files[4] == (here / "hub" / "data" / "0-0.png").resolve()


def test_a_build_that_was_cut_goes_on(request, monkeypatch):
    request.getfixturevalue("mapping")
    write("a.parquet", 5, emb=lists(ROWS))
    whole = vector_parquet._matrix

    def cut(lists, width, dtype, where, first):
        if first >= 5:
            raise KeyboardInterrupt
        return whole(lists, width, dtype, where, first)

    monkeypatch.setattr(vector_parquet, "_matrix", cut)
    with pytest.raises(KeyboardInterrupt):
        load_data("a.parquet")
    firsts = []

    def watched(lists, width, dtype, where, first):
        firsts.append(first)
        return whole(lists, width, dtype, where, first)

    monkeypatch.setattr(vector_parquet, "_matrix", watched)
    assert np.array_equal(load_data("a.parquet").vectors, ROWS)
    assert firsts[0] >= 3


def test_images_win_unless_the_column_is_named(here):
    Image.new("RGB", (9, 9)).save("p.png")
    encoded = [(here / "p.png").read_bytes()] * 12
    write(image=encoded, emb=lists(ROWS))
    assert load_data("a.parquet", size=9).images.shape == (12, 9, 9, 3)
    assert load_images("a.parquet", size=9).n_images == 12
    assert np.array_equal(load_data("a.parquet", column="emb").vectors, ROWS)


def test_vectors_are_no_images(here):
    (here / "hub").mkdir()
    write("hub/a.parquet", emb=lists(ROWS))
    for source in ("hub", "hub/a.parquet"):
        assert refused(source, load_images) == (
            f"{source} holds feature vectors, no images: give images here"
        )
    write("a.parquet", label=[1, 2])
    assert "no image column" in refused("a.parquet")


def test_of_several_columns_one_must_be_named():
    write(clip=lists(ROWS), dino=lists(ROWS + 1), tokens=pa.array([[1, 2]] * 6 + [[3, 4]] * 6))
    told = refused("a.parquet")
    assert told == "a.parquet has several columns of vectors, clip, dino: name one by --column"
    assert np.array_equal(load_data("a.parquet", column="dino").vectors, ROWS + 1)
    assert load_data("a.parquet", column="tokens").n_features == 2
    assert "no column 'dion': did you mean 'dino'?" in refused("a.parquet", column="dion")
    write(emb=lists(ROWS), label=list(range(12)))
    told = refused("a.parquet", column="label")
    assert (
        "column 'label' of a.parquet is of type int64: give one of lists of numbers (emb)" in told
    )


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 5)], ids=str)
@pytest.mark.parametrize("large", [False, True])
def test_missing_rows_and_values_are_counted_or_left_out(request, kind, large):
    if large:
        request.getfixturevalue("mapping")
    rows = [list(map(float, row)) for row in ROWS]
    rows[4] = None
    rows[7][2] = None
    rows[9][0] = float("nan")
    write("a.parquet", 5, emb=pa.array(rows, kind), label=[*"abcd", "only", *"abcdabc"])
    told = refused("a.parquet")
    assert "column 'emb' of a.parquet has NaN, infinite or missing values in 3 of 12 rows" in told
    assert "first in row 4" in told
    assert "--on-bad skip" in told
    found = load_data("a.parquet", on_bad="skip")
    assert np.array_equal(found.vectors, np.delete(ROWS, [4, 7, 9], axis=0))
    assert len(found.skipped) == 3
    assert found.class_names == ("a", "b", "c", "d")


def test_vectors_of_several_widths_are_refused():
    rows = [*ROWS[:7], ROWS[7, :3], *ROWS[8:]]
    write("a.parquet", 5, emb=lists(rows))
    assert "row 7 has 3 numbers, the first one 5" in refused("a.parquet")
    write("a.parquet", 5, emb=lists([ROWS[0, :3], *ROWS[1:]]))
    assert "row 1 has 5 numbers, the first one 3" in refused("a.parquet")
    write(emb=lists([[]] * 3))
    assert "column 'emb' of a.parquet holds no number" in refused("a.parquet")
    write(emb=lists([]))
    assert "a.parquet has no rows" in refused("a.parquet")


def test_a_first_list_that_is_missing_does_not_tell_the_width():
    write(emb=lists([None, *ROWS[1:]]))
    assert load_data("a.parquet", on_bad="skip").vectors.shape == (11, 5)


def test_a_damaged_file_says_so_in_one_line(here):
    write(emb=lists(RANDOM.normal(size=(500, 5))))
    content = bytearray((here / "a.parquet").read_bytes())
    (here / "cut.parquet").write_bytes(content[:-20])
    assert "no Parquet file, damaged or cut short" in refused("cut.parquet")
    content[100:1100] = bytes(1000)
    (here / "a.parquet").write_bytes(content)
    assert "damaged or cut short" in refused("a.parquet")

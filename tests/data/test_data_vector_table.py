import numpy as np
import pytest
from PIL import Image

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import ImageSet, load_data, load_images, vector_rows, vector_table
from dcdc.errors import InputError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(6, 4)).astype(np.float32)
LINES = [",".join(map(str, row)) for row in ROWS.tolist()]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(source, load=load_data, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        load(source, **options)
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def written(here, *lines, name="a.csv", end="\n"):
    (here / name).write_bytes(end.join([*lines, ""]).encode())
    return name


@pytest.mark.parametrize(
    "header",
    [
        [],
        ["f0,f1,f2,f3"],
        ["0,1,2,3"],
        ["mean,std,area,edge"],
        ["\ufefff0,f1,f2,f3"],
        ["", "a,b,c,d"],
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_numbers_with_a_header_or_none(here, header, end):
    found = load_data(written(here, *header, *LINES, end=end))
    assert found.vectors.dtype == np.float32
    assert np.array_equal(found.vectors, ROWS)
    assert found.names[0] == "image-0000"
    assert found.targets is found.files is None


def test_tabs_quotes_spaces_and_blank_lines(here):
    lines = [line.replace(",", "\t") for line in LINES]
    assert np.array_equal(load_data(written(here, *lines, name="a.tsv")).vectors, ROWS)
    lines = ['"' + line.replace(",", '" , "') + '"' for line in LINES]
    lines = [line.replace(" ,", ",").replace(", ", ",") for line in lines]
    assert np.array_equal(load_data(written(here, "a,b,c,d", *lines)).vectors, ROWS)
    lines = [line.replace(",", ", ") for line in LINES]
    found = load_data(written(here, "a, b, c, d", "", *lines[:3], "", *lines[3:]))
    assert np.array_equal(found.vectors, ROWS)


def test_a_line_may_be_long(monkeypatch):
    monkeypatch.setattr(vector_table, "_BLOCK_BYTES", 1000)
    rows = RANDOM.normal(size=(20, 2000)).astype(np.float32)
    np.savetxt("a.csv", rows, "%.9g", ",")
    assert np.array_equal(load_data("a.csv").vectors, rows)


def test_labels_paths_and_names_are_no_features(here):
    lines = [f"{row % 2 + 9},p/{row}.jpg,{line},n{row}" for row, line in enumerate(LINES)]
    found = load_data(written(here, "Label,path,f0,f1,f2,f3,id", *lines))
    assert np.array_equal(found.vectors, ROWS)
    assert found.class_names == ("9", "10")
    assert found.targets.tolist() == [0, 1] * 3
    assert list(found.names) == [f"n{row}" for row in range(6)]
    assert found.files[2] == here / "p" / "2.jpg"
    none = load_data("a.csv", target="none")
    assert none.targets is None
    assert none.n_features == 4
    assert load_data("a.csv", target="id").n_classes == 6
    assert "no column 'lable'" in refused("a.csv", target="lable")
    lines = [f"{line},{kind}" for line, kind in zip(LINES, "aabbcc", strict=True)]
    assert load_data(written(here, "a,b,c,d,class", *lines)).class_names == ("a", "b", "c")


def test_a_table_as_pandas_writes_it(here):
    lines = [f"{row},{line},cat" for row, line in enumerate(LINES)]
    found = load_data(written(here, ",0,1,2,3,label", *lines))
    assert np.array_equal(found.vectors, ROWS)
    assert found.class_names == ("cat",)
    found = load_data(written(here, ",a,b,c,d", *(line.removesuffix(",cat") for line in lines)))
    assert np.array_equal(found.vectors, ROWS)


@pytest.mark.parametrize(
    "lines",
    [
        ["path", "p.png"],
        ["path,label", "p.png,3"],
        ["path,label,width,height", "p.png,3,9,9"],
        ["image,x1,y1,x2,y2", "p.png,1,2,3,4"],
        ["file,w1,h1,label", "p.png,1,2,3"],
        ["p", "p.png"],
    ],
)
def test_a_list_of_images_is_read_as_images(here, lines):
    Image.new("RGB", (9, 9)).save("p.png")
    assert isinstance(load_data(written(here, *lines), size=9), ImageSet)
    assert load_images("a.csv", size=9).n_images == 1


def test_vectors_are_no_images(here):
    for name, line in (("a.csv", "1,2,3"), ("a.tsv", "1\t2\t3")):
        assert refused(written(here, line, name=name), load_images) == (
            f"{name} holds feature vectors, no images: give images here"
        )
    assert "--column f has no meaning for a.csv" in refused("a.csv", column="f")


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "NA", "inf", "-inf", "1e99"])
def test_missing_and_infinite_values_are_counted_or_left_out(here, missing):
    lines = list(LINES)
    lines[2] = f"1,{missing},3,4"
    lines[4] = f"1,2,{missing},4"
    told = refused(written(here, *lines))
    assert "a.csv has NaN, infinite or missing values in 2 of 6 rows, first in row 2" in told
    found = load_data("a.csv", on_bad="skip")
    assert np.array_equal(found.vectors, np.delete(ROWS, [2, 4], axis=0))
    assert [each.name for each in found.skipped] == ["image-0002", "image-0004"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["1,2,3", "4,5"], "Row #2: Expected 3 columns, got 2"),
        (["a,b,c", "1,2,3", "4,5"], "Row #3: Expected 3 columns, got 2"),
        (["1,2,3", "4,five,6", "7,8,9"], "invalid value 'five'"),
        (["a,b,colour", "1,2,red"], "column 'colour' of a.csv holds no numbers"),
        (["red,1,2,3", "blue,4,5,6"], "column '1' of a.csv holds no numbers"),
        (["label,a,b", ",1,2"], "a.csv, row 0: no label: fill it, or use --target none"),
        (["a,b,c"], "a.csv has no rows"),
        (["1,2,3", "1,2,3"], "the 2 rows of a.csv are all equal"),
    ],
)
def test_faults_say_where_in_one_line(here, lines, words):
    assert words in refused(written(here, *lines))


def test_a_large_table_is_built_once_and_goes_on(here, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(here / "cache"))
    monkeypatch.setattr(vector_rows, "MAP_ABOVE_BYTES", 0)
    monkeypatch.setattr(vector_table, "_BLOCK_BYTES", 64 * len(LINES[0]))
    rows = RANDOM.normal(size=(1000, 4)).astype(np.float32)
    np.savetxt("a.csv", rows, "%.9g", ",")
    whole = vector_table._blocks

    def cut(file, columns, start):
        for number, block in enumerate(whole(file, columns, start)):
            if number == 3:
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(vector_table, "_blocks", cut)
    with pytest.raises(KeyboardInterrupt):
        load_data("a.csv")
    starts = []

    def watched(file, columns, start):
        starts.append(start)
        yield from whole(file, columns, start)

    monkeypatch.setattr(vector_table, "_blocks", watched)
    for _ in range(2):
        assert np.array_equal(load_data("a.csv").vectors, rows)
    assert len(starts) == 1
    assert starts[0] > 0

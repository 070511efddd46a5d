import os

import pytest

from dcdc.data.listing import BadImage
from dcdc.data.path_list import list_files, list_paths
from dcdc.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write_list(name, text, encoding="utf-8"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return tmp_path / name

    return write_list


def refused(file, **options):
    with pytest.raises(InputError) as caught:
        list_paths(file, **options)
    assert "\n" not in str(caught.value)
    assert file.name in str(caught.value)
    return str(caught.value)


def found_at(listing, start=0):
    return [str(e) if isinstance(e, BadImage) else e for e in listing.encoded(start)]


def labels(listing):
    if listing.targets is None:
        return None
    return [listing.class_names[code] for code in listing.targets]


TABLE = "path,label\nb.png,dog\na.png,cat\nc/d.png,dog\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", TABLE),
        ("x.CSV", TABLE),
        ("x.csv", TABLE.replace("\n", "\r\n")),
        ("x.csv", "\ufeff" + TABLE),
        ("x.csv", "\n" + TABLE.replace("\n", "\n\n")),
        ("x.csv", TABLE.replace(",", ", ").replace("dog", '"dog"')),
        ("x.csv", TABLE.rstrip("\n")),
        ("x.tsv", TABLE.replace(",", "\t")),
        ("x.csv", "index,Class,file_name\n0,dog,b.png\n1,cat,a.png\n2,dog,c/d.png\n"),
        ("x.txt", "b.png\tdog\na.png\tcat\nc/d.png\tdog\n"),
        ("x.lst", "# of animals\r\n\r\nb.png\tdog\r\na.png\t cat\r\n   \r\nc/d.png\tdog"),
    ],
)
def test_the_same_list_written_in_many_ways(tmp_path, write, name, text):
    found = list_paths(write(name, text))
    assert found.where == str(tmp_path / name)
    assert list(found.names) == ["b.png", "a.png", "c/d.png"]
    assert found.class_names == ("cat", "dog")
    assert found.targets.tolist() == [1, 0, 1]


@pytest.mark.parametrize("column", ["path", "file", "filename", "file_name", "image", "img", "Img"])
def test_names_of_the_path_column(write, column):
    found = list_paths(write("x.csv", f"number,{column}\n1,a.png\n2,b.png\n"))
    assert list(found.names) == ["a.png", "b.png"]
    assert found.targets is None


def test_the_only_column_holds_the_paths(write):
    found = list_paths(write("x.csv", "photos\na.png\nb.png\n"))
    assert list(found.names) == ["a.png", "b.png"]


@pytest.mark.parametrize(
    ("header", "target", "expected"),
    [
        ("path,label,class", None, ["x", "x"]),
        ("path,class,label", None, ["y", "z"]),
        ("path,Labels,n", None, ["x", "x"]),
        ("path,target,n", None, ["x", "x"]),
        ("path,m,n", None, None),
        ("path,m,n", "n", ["y", "z"]),
        ("path,label,n", "n", ["y", "z"]),
        ("path,label,n", "none", None),
        ("path,label,n", "", None),
    ],
)
def test_which_column_is_the_label(write, header, target, expected):
    file = write("x.csv", header + "\na.png,x,y\nb.png,x,z\n")
    assert labels(list_paths(file, target)) == expected


@pytest.mark.parametrize("target", ["none", ""])
def test_labels_of_plain_text_can_be_left_out(write, target):
    found = list_paths(write("x.txt", "a.png\tx\nb.png\n"), target)
    assert list(found.names) == ["a.png", "b.png"]
    assert found.targets is None


@pytest.mark.parametrize(
    ("written", "class_names"),
    [
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["10", "09", "9"], ("09", "10", "9")),
        (["1", "9" * 30, "2"], ("1", "2", "9" * 30)),
    ],
)
def test_numbers_are_sorted_as_numbers(write, written, class_names):
    rows = "".join(f"{row}.png,{label}\n" for row, label in enumerate(written))
    found = list_paths(write("x.csv", "path,label\n" + rows))
    assert found.class_names == class_names
    assert labels(found) == written


def test_quotes_commas_spaces_and_other_alphabets(write):
    file = write(
        "x.csv", 'path,label\n"a, b.png","x ""y"""\nmy photo.png,ñ\n雪.png,ñ\n"two\nlines.png",ñ\n'
    )
    found = list_paths(file)
    assert list(found.names) == ["a, b.png", "my photo.png", "雪.png", "two\nlines.png"]
    assert labels(found)[0] == 'x "y"'
    assert list(list_paths(write("x.txt", " my photo.png \n雪.png")).names) == [
        "my photo.png",
        "雪.png",
    ]


def test_where_the_files_lie(tmp_path, monkeypatch):
    outside = tmp_path / "outside.png"
    file = tmp_path / "lists" / "x.txt"
    (tmp_path / "lists" / "deep").mkdir(parents=True)
    for path in (outside, tmp_path / "lists" / "a.png", tmp_path / "lists" / "deep" / "b.png"):
        path.write_bytes(b"image")
    os.mkfifo(tmp_path / "lists" / "pipe.png")
    unusual = str(tmp_path / "lists" / "deep" / ".." / "deep" / "gone.png")
    names = ["a.png", "./deep/b.png", "../outside.png", unusual, "gone.png", "deep", "pipe.png"]
    file.write_text("\n".join([*names, "nul\0.png", "n" * 300]))
    monkeypatch.chdir(tmp_path / "lists")
    for found in (list_paths(file), list_paths(file.relative_to(file.parent))):
        monkeypatch.chdir("/")
        here = tmp_path / "lists"
        assert [e if isinstance(e, str) else e.resolve() for e in found_at(found)] == [
            here / "a.png",
            here / "deep" / "b.png",
            outside,
            "no such file",
            "no such file",
            "not a regular file",
            "not a regular file",
            "no such file",
            "no such file",
        ]
        assert found_at(found, 2) == found_at(found)[2:]
        monkeypatch.chdir(here)
    file.write_text(str(outside))
    assert found_at(list_paths(file)) == [outside]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("x.csv", "", "lists no image"),
        ("x.csv", "path\n", "lists no image"),
        ("x.txt", "\n# nothing\n", "lists no image"),
        (
            "x.csv",
            "where,what\na.png,x\n",
            "columns where, what: name that of the paths path, file",
        ),
        ("x.csv", "a.png\nb.png\n", "in the first line"),
        ("x.csv", "path;label\na.png;x\n", "in the first line"),
        ("x.csv", "path,label\na.png,x\nb.png\n", "line 3: 1 fields under 2 columns"),
        ("x.csv", "path,label\na.png,x\nb,c.png,x\n", "line 3: 3 fields under 2 columns"),
        ("x.csv", "path,label\na.png,x\n\nb.png,  \n", "line 4: no label"),
        ("x.csv", "path,label\na.png,x\n ,y\n", "line 3: no path"),
        ("x.csv", 'path,label\na.png,x\n"b.png,x\n', "line 3: "),
        ("x.csv", 'path,label\n"a.png"b,x\n', "line 2: "),
        ("x.txt", "a.png\tx\n#\nb.png\n", "line 3: no label"),
        ("x.txt", "a.png\nb.png\tx\n", "line 1: no label"),
        ("x.txt", "a.png\t\nb.png\tx\n", "line 1: no label"),
        ("x.csv", "path\na.png\nb.png\n\na.png\n", "'a.png' twice, in lines 2 and 5"),
        ("x.csv", "path,label\na.png,x\n./a.png,y\n", "'./a.png' twice, in lines 2 and 3"),
        ("x.txt", "a.png\ndeep/../a.png\n", "twice, in lines 1 and 2"),
        ("x.csv", 'path\n"a\nb.png"\n"a\nb.png"\n', "twice, in lines 3 and 5"),
        ("x.csv", b"path\n\xff\xfea.png\n", "not UTF-8"),
        ("x.csv", TABLE.encode("utf-16"), "not UTF-8"),
        ("x.txt", "naïve.png".encode("latin-1"), "not UTF-8"),
    ],
)
def test_lists_that_are_refused(write, name, text, reason):
    assert reason in refused(write(name, text))


def test_a_target_that_is_no_column(tmp_path, write):
    message = refused(write("x.csv", "path,animal\na.png,x\n"), target="animals")
    assert "did you mean 'animal'?" in message
    assert "path, animal" in message
    assert "no header" in refused(write("x.txt", "a.png\tx\n"), target="animal")
    assert "No such file" in refused(tmp_path / "gone.csv")


def test_the_fingerprint_is_of_paths_and_files(tmp_path, write):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"image")
        os.utime(tmp_path / name, ns=(10**18, 10**18))

    def fingerprint(*rows):
        return list_paths(write("x.csv", "path,label\n" + "\n".join(rows))).fingerprint

    first = fingerprint("a.png,x", "b.png,x", "gone.png,x")
    assert fingerprint("a.png,y", "b.png,x", "gone.png,x") == first  # labels change no pixel
    others = [
        fingerprint("b.png,x", "a.png,x", "gone.png,x"),
        fingerprint("gone.png,x", "a.png,x", "b.png,x"),
        fingerprint("a.png,x", "b.png,x"),
    ]
    (tmp_path / "gone.png").write_bytes(b"")
    others.append(fingerprint("a.png,x", "b.png,x", "gone.png,x"))
    (tmp_path / "gone.png").unlink()
    os.utime(tmp_path / "a.png", ns=(1, 1))
    others.append(fingerprint("a.png,x", "b.png,x", "gone.png,x"))
    assert len({first, *others}) == 6


def test_files_in_memory_come_in_their_order_and_more_than_once(tmp_path):
    files = [tmp_path / name for name in ("b.png", "a.png", "b.png", "gone.png")]
    for file in files[:3]:
        file.write_bytes(b"x")
    listing = list_files(files)
    assert list(listing.names) == [str(file) for file in files]
    assert found_at(listing) == [*files[:3], "no such file"]
    assert found_at(listing, 2) == [files[2], "no such file"]
    before = listing.fingerprint
    files[0].write_bytes(b"longer")
    assert list_files(files).fingerprint != before

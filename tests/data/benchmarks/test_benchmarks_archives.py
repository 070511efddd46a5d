import gzip
import io
import stat
import tarfile
import zipfile

import numpy as np
import pytest

from dcdc.data.benchmarks import archives
from dcdc.data.benchmarks.archives import unpack
from dcdc.errors import InputError

NOISE = np.random.default_rng(0).bytes(200_000)  # does not shrink


def tar_of(path, *members):
    """Members are (name, bytes) or a TarInfo of any other kind."""
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                header = tarfile.TarInfo(member[0])
                header.size, header.mode = len(member[1]), 0o4777
                tar.addfile(header, io.BytesIO(member[1]))
    return path


def zip_of(path, *members):
    """Members are (name, bytes) or (ZipInfo, bytes)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, contents in members:
            zipped.writestr(name, contents)
    return path


MAKERS = [pytest.param(tar_of, "a.tar.gz", id="tar"), pytest.param(zip_of, "a.zip", id="zip")]
both_kinds = pytest.mark.parametrize(("make", "name"), MAKERS)


def special(name, kind, to=""):
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, to
    return header


def zip_special(name, kind):
    header = zipfile.ZipInfo(name)
    header.create_system, header.external_attr = 3, (kind | 0o777) << 16
    return header


def refused(archive, **limits):
    """Nothing is left, inside the target or beside it."""
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(InputError) as caught:
        unpack(archive, archive.parent / "sub" / "out", **limits)
    assert not (archive.parent / "sub" / "out").exists()
    (archive.parent / "sub").rmdir()
    assert sorted(archive.parent.rglob("*")) == before
    assert "\n" not in str(caught.value)
    assert str(archive) in str(caught.value)
    return str(caught.value)


@both_kinds
def test_files_and_folders_come_out_with_plain_permissions(tmp_path, make, name):
    archive = make(tmp_path / name, ("./set/deep/a.bin", NOISE), ("set/b.txt", b"b"), ("c", b""))
    unpack(archive, tmp_path / "out")
    found = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*")}
    assert found == {"set", "set/deep", "set/deep/a.bin", "set/b.txt", "c"}
    assert (tmp_path / "out/set/deep/a.bin").read_bytes() == NOISE
    assert (tmp_path / "out/set/b.txt").read_bytes() == b"b"
    mode = (tmp_path / "out/set/b.txt").stat().st_mode
    assert not mode & (stat.S_ISUID | stat.S_IXUSR)


def test_folders_of_their_own_come_out_too(tmp_path):
    unpack(
        tar_of(tmp_path / "a.tar.gz", special("set", tarfile.DIRTYPE), ("set/a", b"1")),
        tmp_path / "tar",
    )
    unpack(zip_of(tmp_path / "a.zip", ("set/", b""), ("set/a", b"1")), tmp_path / "zip")
    for kind in ("tar", "zip"):
        assert (tmp_path / kind / "set" / "a").read_bytes() == b"1"


@both_kinds
@pytest.mark.parametrize(
    "path",
    ["/etc/x", "../x", "a/../../x", "a/..", "..", "C:/x", "c:x", "..\\x", "a\\b", "\\\\server\\x"],
)
def test_paths_that_may_lead_out(tmp_path, make, name, path):
    message = refused(make(tmp_path / name, ("good", b"1"), (path, b"evil")))
    assert path.encode("unicode_escape").decode() in message


def test_a_name_with_a_null_byte(tmp_path):
    archive = zip_of(tmp_path / "a.zip", ("good.txt_evil", b"1"))
    archive.write_bytes(archive.read_bytes().replace(b"good.txt_evil", b"good.txt\0evil"))
    assert r"good.txt\x00evil" in refused(archive)


@pytest.mark.parametrize(
    "member",
    [
        special("bad", tarfile.SYMTYPE, "/etc/passwd"),
        special("bad", tarfile.SYMTYPE, "good"),
        special("bad", tarfile.LNKTYPE, "good"),
        special("bad", tarfile.FIFOTYPE),
        special("bad", tarfile.CHRTYPE),
        special("bad", tarfile.BLKTYPE),
        special("bad", tarfile.GNUTYPE_SPARSE),
    ],
)
def test_links_and_devices_in_a_tar(tmp_path, member):
    archive = tar_of(tmp_path / "a.tar.gz", ("good", b"1"), member)
    assert "member bad is no plain file" in refused(archive)


def test_writing_through_a_link(tmp_path):
    archive = tar_of(
        tmp_path / "a.tar.gz", special("door", tarfile.SYMTYPE, str(tmp_path)), ("door/x", b"evil")
    )
    assert "door" in refused(archive)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip(tmp_path, kind):
    archive = zip_of(tmp_path / "a.zip", (zip_special("bad", kind), b"/etc/passwd"))
    assert "member bad is no plain file" in refused(archive)


def test_an_encrypted_member(tmp_path):
    archive = zip_of(tmp_path / "a.zip", ("bad", b"1"))
    contents = bytearray(archive.read_bytes())
    contents[contents.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(contents)
    assert "member bad is encrypted" in refused(archive)


@both_kinds
@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a"), ("a/b", "a//b")]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates_never_overwrite(tmp_path, make, name, names):
    archive = make(tmp_path / name, *((path, b"1") for path in names))
    assert "is there twice" in refused(archive)


@both_kinds
def test_a_bomb_is_stopped_while_it_is_written(tmp_path, make, name, monkeypatch):
    monkeypatch.setattr(archives, "_GROWTH_FREE_BYTES", 10_000)
    archive = make(tmp_path / name, ("zeros", bytes(2_000_000)))
    limit = 8 * archive.stat().st_size + 10_000
    assert f"{limit:,} bytes, perhaps a decompression bomb" in refused(archive)
    unpack(archive, tmp_path / "allowed", max_bytes=2_100_000)
    assert (tmp_path / "allowed" / "zeros").stat().st_size == 2_000_000


def test_a_bomb_whose_header_lies(tmp_path):
    archive = zip_of(tmp_path / "a.zip", ("zeros", bytes(2_000_000)), ("zeros2", bytes(2_000_000)))
    contents = archive.read_bytes()
    archive.write_bytes(contents.replace((2_000_000).to_bytes(4, "little"), b"\1\0\0\0"))
    refused(archive, max_bytes=1_000_000)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_bomb_in_a_tar_header(tmp_path, kind):
    """tarfile reads such headers into memory as a whole."""
    header = special("big", kind)
    header.size = 50_000_000
    with gzip.open(tmp_path / "a.tar.gz", "wb") as stream:
        stream.write(header.tobuf(tarfile.GNU_FORMAT))
        stream.write(bytes(header.size))
    assert "decompression bomb" in refused(tmp_path / "a.tar.gz", max_bytes=1_000_000)


def test_a_bomb_behind_the_end_of_a_tar(tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", ("a", b"1"))
    with archive.open("ab") as file:
        file.write(gzip.compress(bytes(3_000_000)))
    assert "decompression bomb" in refused(archive, max_bytes=1_000_000)


@both_kinds
def test_too_many_members(tmp_path, make, name):
    archive = make(tmp_path / name, *((f"{i}", b"") for i in range(11)))
    assert "more than 10 files" in refused(archive, max_members=10)
    unpack(archive, tmp_path / "out", max_members=11)


@both_kinds
@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.5, 0.999])
def test_a_truncated_archive(tmp_path, make, name, share):
    archive = make(tmp_path / name, ("a", NOISE), ("b", NOISE))
    contents = archive.read_bytes()
    archive.write_bytes(contents[: int(share * len(contents))])
    assert "damaged or cut short" in refused(archive)


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_tar_that_lacks_but_its_check_sum(tmp_path, lost):
    archive = tar_of(tmp_path / "a.tar.gz", ("a", NOISE))
    archive.write_bytes(archive.read_bytes()[:-lost])
    assert "damaged or cut short" in refused(archive)


@both_kinds
@pytest.mark.parametrize("place", [0.001, 0.25, 0.5, 0.75])
def test_a_flipped_byte(tmp_path, make, name, place):
    archive = make(tmp_path / name, ("a", NOISE), ("b", NOISE))
    contents = bytearray(archive.read_bytes())
    contents[int(place * len(contents))] ^= 0xFF
    archive.write_bytes(contents)
    refused(archive)


def test_a_bad_header_within_a_tar_is_not_taken_for_its_end(tmp_path):
    """Not even when gzip's check sum is right."""
    plain = gzip.decompress(tar_of(tmp_path / "a.tar.gz", ("a", b"1"), ("b", b"2")).read_bytes())
    damaged = bytearray(plain)
    damaged[1024 + 150] ^= 0xFF  # within the second header's check sum
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(damaged))
    assert "damaged or cut short" in refused(tmp_path / "a.tar.gz")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
@pytest.mark.parametrize("contents", [b"", b"<html>Not Found</html>" * 100, gzip.compress(NOISE)])
def test_another_kind_of_file(tmp_path, name, contents):
    (tmp_path / name).write_bytes(contents)
    assert "damaged or cut short" in refused(tmp_path / name)


def test_an_archive_that_is_not_there(tmp_path):
    assert "No such file" in refused(tmp_path / "a.zip")


def test_a_target_that_exists_is_left_alone(tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", ("a", b"new"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("old")
    with pytest.raises(FileExistsError):
        unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "a").read_text() == "old"

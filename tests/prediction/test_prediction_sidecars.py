"""XMP sidecars: new ones, somebody's own, and what is none."""

import re
from xml.etree import ElementTree

import pytest

from dcdc.errors import InputError
from dcdc.prediction.sidecars import Sidecars, with_keyword

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
SUBJECT = "{http://purl.org/dc/elements/1.1/}subject"
DARKTABLE = """<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:darktable="http://darktable.sf.net/" xmlns:dc="http://purl.org/dc/elements/1.1/"
   xmp:Rating="3" darktable:xmp_version="5">
   <!-- mine -->
   <dc:subject><rdf:Bag><rdf:li>family &amp; friends</rdf:li></rdf:Bag></dc:subject>
   <darktable:history><rdf:Seq>
    <rdf:li darktable:operation="exposure"/></rdf:Seq></darktable:history>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<!-- the end -->
"""
BARE = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:a="urn:a" a:b="1"/></rdf:RDF>"""


def keywords(content: bytes) -> list[str]:
    root = ElementTree.fromstring(content.decode().replace("\ufeff", ""))
    subjects = root.iter(SUBJECT)
    return [item.text for subject in subjects for item in subject.iter(f"{RDF}li")]


@pytest.mark.parametrize("keyword", ["cats", 'a "b" & <c>', "Vögel im Garten", "]]>"])
def test_a_new_one_holds_the_keyword(tmp_path, keyword):
    content = with_keyword(tmp_path / "a.jpg.xmp", keyword)
    assert keywords(content) == [keyword]
    assert content.startswith(b"<?xpacket begin=")
    (tmp_path / "a.jpg.xmp").write_bytes(content)
    assert with_keyword(tmp_path / "a.jpg.xmp", keyword) is None
    assert with_keyword(tmp_path / "none.xmp", None) is None


def test_somebodys_own_keeps_all_it_holds(tmp_path):
    path = tmp_path / "a.jpg.xmp"
    path.write_text(DARKTABLE)
    path.write_bytes(with_keyword(path, "cats"))
    text = path.read_text()
    assert keywords(path.read_bytes()) == ["family & friends", "cats"]
    for part in (
        *('xmp:Rating="3"', "<!-- mine -->", 'darktable:operation="exposure"', "x:xmptk"),
        *('<?xml version="1.0" encoding="UTF-8"?>\n', "</x:xmpmeta>\n<!-- the end -->\n"),
    ):
        assert part in text, part
    assert with_keyword(path, "cats") is None


def test_a_later_keyword_takes_the_place_of_ours_alone(tmp_path):
    path = tmp_path / "a.jpg.xmp"
    path.write_text(DARKTABLE)
    for keyword, wanted in (
        ("cats", ["family & friends", "cats"]),
        ("dogs", ["family & friends", "dogs"]),
        ("family & friends", ["family & friends"]),
        ("birds", ["family & friends", "birds"]),  # the other one was never ours
        (None, ["family & friends"]),
    ):
        path.write_bytes(with_keyword(path, keyword))
        assert keywords(path.read_bytes()) == wanted
    assert with_keyword(path, None) is None


def test_one_without_keywords_gets_a_list(tmp_path):
    path = tmp_path / "a.xmp"
    path.write_text(BARE)
    path.write_bytes(with_keyword(path, "cats"))
    assert keywords(path.read_bytes()) == ["cats"]
    assert 'a:b="1"' in path.read_text()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no XML at all",
        b"<a/>",
        DARKTABLE.encode()[:300],
        DARKTABLE.encode("utf-16"),
        b"\xff\xfe\x00",
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + BARE.encode(),
        BARE.replace('a:b="1"/>', '><dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/">cats'
                     "</dc:subject></rdf:Description>").encode(),
    ],
)  # fmt: skip
def test_what_is_no_sidecar_is_refused_in_a_line(tmp_path, content):
    path = tmp_path / "a.xmp"
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(str(path))) as told:
        with_keyword(path, "cats")
    assert "\n" not in str(told.value)


def test_where_they_lie(tmp_path):
    own = Sidecars(tmp_path)
    assert own.path_of("trip/a.jpg") == tmp_path / "trip" / "a.jpg.xmp"
    assert own.path_of("/etc/../../passwd.jpg") == tmp_path / "etc" / "passwd.jpg.xmp"
    assert (
        Sidecars(tmp_path, like_lightroom=True).path_of("trip/a.b.jpg") == tmp_path / "trip/a.b.xmp"
    )

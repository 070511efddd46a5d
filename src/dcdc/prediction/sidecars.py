"""XMP sidecars: a photo's cluster as a keyword, in a small file that photo programs read.

A sidecar that is there, of whatever program, keeps all it holds: the keyword is added to its own.
What we added is noted in it, so that a later call takes it away before it adds another. XMP is
ISO 16684-1; keywords are its `dc:subject`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from dcdc.errors import InputError
from dcdc.runtime.atomic_files import atomic_file
from dcdc.stored.reading import read_bytes
from dcdc.stored.schema import Unfit

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DC = "http://purl.org/dc/elements/1.1/"
_OURS = "https://dcdc.invalid/ns/1.0/"
"""Of the note of what we added; nothing is there to be asked for."""
_NEW = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="{rdf}">
  <rdf:Description rdf:about="" xmlns:dc="{dc}" xmlns:dcdc="{ours}" dcdc:keyword={noted}>
   <dc:subject><rdf:Bag><rdf:li>{keyword}</rdf:li></rdf:Bag></dc:subject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""
_LISTS = tuple(f"{{{_RDF}}}{kind}" for kind in ("Bag", "Seq", "Alt"))
_LARGEST = 16 * 2**20
_PREFIX = re.compile(r"""xmlns:([\w.-]+)\s*=\s*["']([^"']*)["']""")
_RESERVED = re.compile(r"ns\d+")  # by ElementTree, which then takes a prefix of its own


@dataclass(frozen=True)
class Sidecars:
    """Where they go: below `folder`, each where its photo lies below the source."""

    folder: Path
    like_lightroom: bool = False
    """`IMG_1.xmp`, which Lightroom looks for, and not `IMG_1.jpg.xmp`, as digiKam and darktable."""

    def path_of(self, name: str) -> Path:
        """Of a photo's name; never outside the folder."""
        parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
        file = self.folder.joinpath(*parts)
        return (
            file.with_suffix(".xmp") if self.like_lightroom else file.with_name(f"{file.name}.xmp")
        )


def with_keyword(path: Path, keyword: str | None) -> bytes | None:
    """What the sidecar should hold; None where it is as it should be. Without a keyword, one that
    we added earlier goes. Raises InputError for a sidecar that cannot be read as one."""
    try:
        content = read_bytes(path, _LARGEST)
    except FileNotFoundError:
        return None if keyword is None else _new(keyword)
    except (OSError, Unfit) as error:
        raise _no_sidecar(path, getattr(error, "strerror", None) or str(error)) from None
    try:
        return _merged(content, keyword)
    except (ElementTree.ParseError, expat.ExpatError, UnicodeDecodeError, ValueError) as error:
        raise _no_sidecar(path, str(error)) from None


def write_sidecars(
    found: Mapping[Path, bytes], progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Each whole or not at all."""
    for number, (path, content) in enumerate(found.items(), start=1):
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
        progress(number, len(found))


def _no_sidecar(path: Path, why: str) -> InputError:
    return InputError(
        f"{path} is no XMP sidecar that a keyword could be added to ({why}): nothing was written; "
        "move it away, or choose another folder"
    )


def _new(keyword: str) -> bytes:
    return _NEW.format(
        rdf=_RDF, dc=_DC, ours=_OURS, noted=quoteattr(keyword), keyword=escape(keyword)
    ).encode()


def _merged(content: bytes, keyword: str | None) -> bytes | None:
    """With prefixes, comments and what stands around the root as they were."""
    start, end = _root_of(content)
    inside = content[start:end].decode("utf-8")
    for prefix, name in (*_PREFIX.findall(inside), ("rdf", _RDF), ("dc", _DC), ("dcdc", _OURS)):
        if not _RESERVED.fullmatch(prefix):
            ElementTree.register_namespace(prefix, name)
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    root = ElementTree.fromstring(inside, ElementTree.XMLParser(target=builder))
    descriptions = root.findall(f".//{{{_RDF}}}RDF/{{{_RDF}}}Description")
    if root.tag == f"{{{_RDF}}}RDF":
        descriptions = root.findall(f"{{{_RDF}}}Description")
    if not descriptions:
        raise ValueError("no rdf:Description in it")
    if not _changed(descriptions, keyword):
        return None
    merged: bytes = ElementTree.tostring(root, encoding="unicode").encode()
    return content[:start] + merged + content[end:]


def _root_of(content: bytes) -> tuple[int, int]:
    """Where its root element begins and ends."""
    parser = expat.ParserCreate()
    depth, places = 0, [0, 0]

    def begin(*_: object) -> None:
        nonlocal depth
        if depth == 0:
            places[0] = parser.CurrentByteIndex
        depth += 1

    def finish(*_: object) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            places[1] = content.index(b">", parser.CurrentByteIndex) + 1

    def refuse(*_: object) -> None:
        raise ValueError("it declares entities")

    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.Parse(content, True)
    return places[0], places[1]


def _changed(descriptions: list[ElementTree.Element], keyword: str | None) -> bool:
    """Whether anything had to be: the keyword is there once, and an earlier one of ours is not."""
    note = f"{{{_OURS}}}keyword"
    noted = next((each for each in descriptions if note in each.attrib), None)
    earlier = None if noted is None else noted.attrib[note]
    if earlier == keyword:
        return False
    if noted is not None and earlier is not None:
        del noted.attrib[note]
        for bag in _bags(descriptions):
            for item in [each for each in bag if _says(each, earlier)]:
                bag.remove(item)
    if keyword is None:
        return True
    bags = _bags(descriptions)
    if not bags:
        subject = ElementTree.SubElement(descriptions[0], f"{{{_DC}}}subject")
        bags.append(ElementTree.SubElement(subject, f"{{{_RDF}}}Bag"))
    bag = bags[0]
    if any(_says(each, keyword) for each in bag):
        return earlier is not None  # somebody gave the same keyword, which then is theirs
    ElementTree.SubElement(bag, f"{{{_RDF}}}li").text = keyword
    (noted if noted is not None else descriptions[0]).set(note, keyword)
    return True


def _says(item: ElementTree.Element, keyword: str) -> bool:
    return item.tag == f"{{{_RDF}}}li" and (item.text or "").strip() == keyword


def _bags(descriptions: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Lists of keywords; raises ValueError for keywords that are no list."""
    found = []
    for subject in (each for one in descriptions for each in one.findall(f"{{{_DC}}}subject")):
        lists = [each for each in subject if each.tag in _LISTS]
        if not lists:
            raise ValueError("its dc:subject is no list")
        found += lists
    return found

"""What the site has beyond the pages of docs/: root pages, files they link to, commands, boxes."""

import html
import re
from pathlib import Path
from typing import Any

from griffe import DocstringSectionKind, Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """GitHub draws Mermaid's charts by a script from elsewhere; the site has boxes in rows."""
    fence = {"name": "mermaid", "class": "flowchart", "format": flowchart}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the root's pages, and every file outside docs/ that a page links to."""
    wanted = set(ROOT_PAGES)
    for page in Path(config.docs_dir).glob("*.md"):
        wanted |= set(re.findall(r"\]\(\.\./([^)#]+)", page.read_text(encoding="utf-8")))
    for path in sorted(wanted):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links as they are in the site, where the root's files stand beside those of docs/."""
    if page.file.src_uri in ROOT_PAGES:
        return markdown.replace("](docs/", "](")
    if "/" not in page.file.src_uri:
        markdown = markdown.replace("](../", "](")
    return markdown.replace("<!-- commands -->", commands()) if "<!-- c" in markdown else markdown


def commands() -> str:
    """Every verb with its arguments and options, from their own help texts."""
    import click
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from dcdc.cli import app

    verbs = get_command(app)
    text = get_docs_for_click(obj=verbs, ctx=click.Context(verbs), indent=1, name="dcdc")
    # The list of verbs cuts their help short, and the page has them all.
    return re.sub(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+", "", text)


class OurDocstrings(Extension):
    """Ours have `name : what it is`, where numpydoc has `name : type`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        for section in obj.docstring.parsed if obj.docstring else ():
            if section.kind in (DocstringSectionKind.parameters, DocstringSectionKind.attributes):
                for each in section.value:
                    each.description = f"{each.annotation} {each.description}"
                    each.annotation = None


def flowchart(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:  # noqa: ARG001
    """A Mermaid flowchart as rows of boxes: needs no script, and reads well aloud.

    Boxes are declared in the order in which they follow each other. A box says where it leads where
    that is not the row below.
    """
    boxes = dict(re.findall(r'^ *(\w+)\["(.*)"\]$', source, flags=re.MULTILINE))
    order = list(boxes)
    edges = []
    for line in source.splitlines():
        names = re.split(r" *-->(?:\|.*?\|)? *", line.strip())
        notes = re.findall(r'-->(?:\|"(.*?)"\|)?', line)
        edges += zip(names, names[1:], notes, strict=False)
    row = dict.fromkeys(order, 0)
    for box in order:
        for start, end, _note in edges:
            if start == box and order.index(end) > order.index(box):
                row[end] = max(row[end], row[box] + 1)

    def leads_to(box: str) -> str:
        below = [each for each in order if row[each] == row[box] + 1]
        ends = [(end, note) for start, end, note in edges if start == box]
        if [end for end, _ in ends] == below and not any(note for _, note in ends):
            return ""
        said = (title(end) + (f" ({html.escape(note)})" if note else "") for end, note in ends)
        return f"<small>→ {'; '.join(said)}</small>" if ends else ""

    def title(box: str) -> str:
        return html.escape(boxes[box].partition("<br/>")[0].rpartition(": ")[2])

    def shown(box: str) -> str:
        first, *rest = (html.escape(line) for line in boxes[box].split("<br/>"))
        return f"<div><b>{first}</b>{''.join(f'<br>{line}' for line in rest)}{leads_to(box)}</div>"

    rows = [[box for box in order if row[box] == number] for number in range(max(row.values()) + 1)]
    drawn = "".join(f"<div>{''.join(map(shown, each))}</div>" for each in rows)
    return f'<div class="{css_class}">{drawn}</div>'

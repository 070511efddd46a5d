"""Templates to pages: one HTML file with everything inside, scripts of ours alone, nothing that
loads."""

import base64
import hashlib
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dcdc.printable import shown_lines

_TEMPLATES = PackageLoader("dcdc.report")
_ENVIRONMENT = Environment(
    loader=_TEMPLATES,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: shown_lines(value) if type(value) is str else value,
)


def render(template: str, **values: object) -> str:
    """A file name that is no valid text does not keep a page from being written."""
    text = _ENVIRONMENT.get_template(template).render(**values)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Script(NamedTuple):
    text: Markup
    known_by: str
    """What a page's policy knows it by: no other may run."""


def script_of(*names: str) -> Script:
    """One of the templates' scripts, or several as one."""
    text = "\n".join(_TEMPLATES.get_source(_ENVIRONMENT, name)[0] for name in names)
    assert "</" not in text  # nothing may end the element early
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return Script(Markup(text), f"sha256-{base64.b64encode(digest).decode('ascii')}")


def duration(seconds: float) -> str:
    """Short enough for one line of a tile."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"

"""What the viewer's server answers: the page, lists of rows, facts of images, and pictures."""

import json
import re
import secrets
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from dcdc.data.listing import BadImage
from dcdc.engine.edits import OUTSIDE
from dcdc.report.themes import DARK, LIGHT
from dcdc.stored.reading import parse_json
from dcdc.stored.schema import Anything, MapOf, Maybe, Record, Text, Unfit
from dcdc.viewer.corrections import Outdated
from dcdc.viewer.exporting import Exports
from dcdc.viewer.server import Answer, Request, refusal
from dcdc.viewer.splitting import MOST_PARTS
from dcdc.viewer.thumbnails import Thumbnails, full_size
from dcdc.viewer.told import about, overview
from dcdc.viewer.viewed_run import ORDERS, ViewedRun, Wish

_SCRIPTS = (
    *("dom", "edits", "export", "grid", "groups", "image", "known", "map", "picker", "split"),
    "view",
)
_STATIC = {
    "/": ("view.html", "text/html; charset=utf-8"),
    "/view.css": ("view.css", "text/css; charset=utf-8"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _SCRIPTS},
}
_PICTURE = re.compile(r"/(thumbnail|original)/([0-9]{1,9})")
_MOST_ABOUT = 500
_ASKED = Record({"version": Text(), "edit": Maybe(MapOf(Anything()))})
"""Of an edit; null takes the last one back."""
_NOT_FOUND = refusal(HTTPStatus.NOT_FOUND, "there is no such thing here")


class Answers:
    """Of one run."""

    def __init__(self, run: ViewedRun) -> None:
        self._run = run
        self._thumbnails = Thumbnails()
        self._exports = Exports(run.corrections.folder)
        self._look = {
            "stamp": secrets.token_hex(4),  # pictures that a browser keeps are of this server alone
            "colours": {"light": LIGHT.many_colours, "dark": DARK.many_colours},
        }

    def __call__(self, request: Request) -> Answer:
        picture = _PICTURE.fullmatch(request.path)
        if request.method != "GET":
            return self._changed(request)
        if picture:
            return self._picture(picture[1], int(picture[2]))
        if request.path in _STATIC:
            name, kind = _STATIC[request.path]
            return Answer(kind, _static(name))
        query = request.query
        match request.path:
            case "/overview":
                return _json(overview(self._run) | self._look)
            case "/rows":
                wish = _wish(query)
                if wish is None:
                    return refusal(HTTPStatus.BAD_REQUEST, "no such order or cluster")
                return Answer("application/octet-stream", self._run.rows(wish).tobytes())
            case "/about":
                rows = [self._row(text) for text in query.get("rows", "").split(",")]
                if None in rows or len(rows) > _MOST_ABOUT:
                    return _NOT_FOUND
                return _json(about(self._run, [row for row in rows if row is not None]))
            case "/nearest":
                row = self._row(query.get("row", ""))
                return _NOT_FOUND if row is None else _json(self._run.nearest(row))
            case "/groups":
                return _json(self._groups(query.get("kind", "")))
            case "/parts":
                cluster, n_parts = (_number(query.get(key, "")) for key in ("cluster", "n"))
                if cluster is None or n_parts is None or n_parts > MOST_PARTS:
                    return _NOT_FOUND
                return _json(self._run.parts(cluster, n_parts))
            case "/export":
                return _json(self._exports.told())
            case "/map":
                return _json(self._run.map())
        return _NOT_FOUND

    def _changed(self, request: Request) -> Answer:
        act = {"/edits": self._edited, "/export": self._exported}.get(request.path)
        if act is None:
            return _NOT_FOUND
        if request.kind != "application/json":
            return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "it has to be JSON")
        try:
            return act(parse_json(request.body))
        except Unfit as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))

    def _edited(self, asked: Any) -> Answer:
        """The overview after the edit, which is then written."""
        _ASKED.check(asked, "")
        corrections = self._run.corrections
        try:
            if asked["edit"] is None:
                corrections.undo(asked["version"])
            else:
                corrections.make(asked["edit"], asked["version"], self._run.with_duplicates)
        except Outdated as error:
            self._run.take_corrections()
            return refusal(HTTPStatus.CONFLICT, str(error))
        self._run.take_corrections()
        return _json(overview(self._run) | self._look)

    def _exported(self, wish: Any) -> Answer:
        self._exports.start(wish)
        return _json(self._exports.told())

    def _row(self, text: str) -> int | None:
        row = _number(text)
        return row if row is not None and row < self._run.n_images else None

    def _picture(self, what: str, row: int) -> Answer:
        if self._run.originals is None or row >= self._run.n_images:
            return _NOT_FOUND
        original = self._run.originals.of(row)
        try:
            found = self._thumbnails.of(original) if what == "thumbnail" else full_size(original)
        except BadImage as bad:
            return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, f"cannot be shown: {bad}")
        return Answer(found.kind, found.content, may_be_kept=True)

    def _groups(self, kind: str) -> list[list[int]]:
        duplicates = self._run.duplicates
        groups = duplicates.copies if kind == "copies" else duplicates.near
        return [group.tolist() for group in groups]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _wish(query: Mapping[str, str]) -> Wish | None:
    """None for what cannot be wished for."""
    order, cluster = query.get("order", ORDERS[0]), query.get("cluster", "")
    if order not in ORDERS or not re.fullmatch(r"(-1|[0-9]{0,9})", cluster):
        return None
    return Wish(
        cluster=max(OUTSIDE, int(cluster)) if cluster else None,
        order=order,
        backwards=query.get("backwards") == "1",
        find=query.get("find", ""),
        once=query.get("once", "1") == "1",
    )


def _json(value: Any) -> Answer:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Answer("application/json", text.encode())


@cache
def _static(name: str) -> bytes:
    """The page knows nothing of the run: what it shows of it, its script asks for."""
    loader = ChoiceLoader([PackageLoader("dcdc.viewer"), PackageLoader("dcdc.report")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    if not name.endswith(".css"):
        return loader.get_source(environment, name)[0].encode()
    return environment.get_template(name).render(light=LIGHT, dark=DARK).encode()

"""The viewer's server: this machine alone, one token, one origin, and images by their row.

Every request is held against the Host that the server has (a site whose name leads here is another
one), and needs the token: in the address of the first page, in a cookie of that page's origin from
then on. A page of another origin gets nothing that it could read or show.
"""

import hmac
import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

from dcdc.errors import InputError

ADDRESS = "127.0.0.1"
_MOST_POSTED = 8 * 2**20
_IDLE_SECONDS = 60
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""
    kind: str = ""
    """The body's MIME type."""


@dataclass(frozen=True)
class Answer:
    kind: str
    """Its MIME type."""
    content: bytes | BinaryIO
    status: HTTPStatus = HTTPStatus.OK
    may_be_kept: bool = False
    """By the browser, until the server ends."""
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(status: HTTPStatus, why: str) -> Answer:
    return Answer("text/plain; charset=utf-8", f"{why}\n".encode(), status)


Answering = Callable[[Request], Answer]


class ViewServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Answering, port: int = 0) -> None:
        """`port` 0: one that is free."""
        self.answer = answer
        self.token = secrets.token_urlsafe(32)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise InputError(
                f"cannot be listened on: {error.strerror or error}",
                parameter="port",
                value=port,
                remedy="give another, or none for one that is free",
            ) from None
        self.hosts = tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))
        self.cookie = f"dcdc-view-{self.server_port}"

    def server_bind(self) -> None:
        """Without asking any network for this machine's name, as the library's own would."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a browser that breaks off is no fault, and faults of answers are answered."""

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dcdc", ""
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            self._send(self._answered())

    def _answered(self) -> Answer:
        address = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(address.query).items()}
        body = self._body()
        if body is None:
            self.close_connection = True
            return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too much to read")
        why = self._why_not(query)
        if why is not None:
            return refusal(HTTPStatus.FORBIDDEN, why)
        try:
            kind = self.headers.get_content_type()
            return self.server.answer(Request(self.command, address.path, query, body, kind))
        except InputError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # one request's fault ends neither the server nor its connection
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")

    def _body(self) -> bytes | None:
        """None: more than is read here, or of a length that is not told."""
        told = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (told.isascii() and told.isdecimal()):
            return None
        length = int(told) if len(told) < 10 else _MOST_POSTED + 1
        return self.rfile.read(length) if length <= _MOST_POSTED else None

    def _why_not(self, query: Mapping[str, str]) -> str | None:
        headers = self.headers
        if len(headers.get_all("Host", [])) != 1 or headers["Host"] not in self.server.hosts:
            return "this server has another name"
        if _same(query.get("token", ""), self.server.token) and self.command == "GET":
            return None
        if not _same(_cookie(headers, self.server.cookie), self.server.token):
            return "open the address that dcdc view printed: it holds this visit's token"
        if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            return "asked for by a page of another origin"
        if self.command == "POST" and headers.get("Origin") != f"http://{headers['Host']}":
            return "sent by a page of another origin"
        return None

    def _send(self, answer: Answer) -> None:
        content = answer.content
        self.send_response(answer.status)
        for name, value in (_HEADERS | dict(answer.headers)).items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        kept = "private, max-age=86400, immutable" if answer.may_be_kept else "no-store"
        self.send_header("Cache-Control", kept)
        if self.command == "GET" and self.path.startswith("/?"):
            token = f"{self.server.cookie}={self.server.token}"
            if answer.status == HTTPStatus.OK:
                self.send_header("Set-Cookie", f"{token}; Path=/; HttpOnly; SameSite=Strict")
        if isinstance(content, bytes):
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        with content:
            length = content.seek(0, 2)
            content.seek(0)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.close_connection = True  # a file that is cut short meanwhile ends the answer
            shutil.copyfileobj(content, self.wfile)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Of requests that are no HTTP, or of another method: as plain as all others."""
        self.close_connection = True
        with suppress(ConnectionError, TimeoutError):
            self._send(refusal(HTTPStatus(code), message or explain or "refused"))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who looks at which image is nobody's affair."""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def _cookie(headers: Message, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value

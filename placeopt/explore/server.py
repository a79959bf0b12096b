"""The server of an explorer: this machine alone, a token in every address, one page."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from placeopt.core.errors import PlaceoptError, UsageError
from placeopt.explore.page import page, plan_of, state
from placeopt.explore.runs import Runs
from placeopt.explore.source import FrontSource

#: Longest body of a request, in bytes.
_MAX_BODY = 10_000
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Explorer(ThreadingHTTPServer):
    """A server on 127.0.0.1 for one source.

    Parameters
    ----------
    source : FrontSource
    runs : Runs or None
        What starts runs; None: the explorer only reads.
    port : int
        0 for any that is free.

    Raises
    ------
    UsageError
        The port is taken.
    """

    daemon_threads = True

    def __init__(self, source: FrontSource, runs: Runs | None = None, port: int = 0):
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise UsageError(f"port {port}: {error.strerror}; give another --port") from None
        self.source, self.runs = source, runs
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


def serve(
    source: FrontSource,
    *,
    port: int = 0,
    solve: bool = False,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page of a source until Ctrl-C.

    Parameters
    ----------
    source : FrontSource
    port : int
        0 for any that is free.
    solve : bool
        The page may start runs, whose fronts are written when they end.
    ready : callable
        Called with the address of the page.
    """
    runs = Runs(source) if solve else None
    with Explorer(source, runs, port) as explorer:
        try:
            ready(explorer.address)
            explorer.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            if runs is not None:
                runs.stop()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; refuses those that do not name the token and this machine."""

    server: Explorer
    server_version, sys_version = "placeopt", ""

    def do_GET(self) -> None:
        self._answer({"": self._page, "state": self._state, "plan": self._plan})

    def do_POST(self) -> None:
        self._answer({"solve": self._solve, "stop": self._stop} if self.server.runs else {})

    def _answer(self, legal: dict[str, Callable[[dict[str, str]], None]]) -> None:
        parts = urlsplit(self.path)
        _, token, *rest = (*parts.path.split("/"), "")
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        elif self.path == "/favicon.ico":  # browsers ask for it by themselves; there is none
            self._send(HTTPStatus.NO_CONTENT, "image/x-icon", "")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the address lacks its token")
        elif rest[0] not in legal or len(rest) > 2:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            try:
                legal[rest[0]](query)
            except PlaceoptError as error:
                self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            except OSError:  # the browser left
                self.close_connection = True
            except Exception as error:  # a mistake of ours: the page says it, and the server stays
                what = f"{type(error).__name__}: {error}"
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, what)

    # -- what is asked -----------------------------------------------------------------------------

    def _page(self, query: dict[str, str]) -> None:
        text = page(self.server.source, self.server.runs)
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", text)

    def _state(self, query: dict[str, str]) -> None:
        shown = self.server.source.look(query.get("group", ""))
        running = None if self.server.runs is None else self.server.runs.told()
        if query.get("since") == shown.version:
            self._json({"version": shown.version, "run": running})
        else:
            self._json(state(shown, self.server.source) | {"run": running})

    def _plan(self, query: dict[str, str]) -> None:
        shown = self.server.source.look(query.get("group", ""))
        number = query.get("n", "")
        if query.get("version") != shown.version:
            self._json({"stale": True})  # a status would be an error on the browser's console
        elif shown.front is None or not number.isdecimal() or int(number) >= len(shown.front):
            raise UsageError(f"there is no plan {number!r}")
        else:
            self._json(plan_of(shown, int(number)))

    def _solve(self, query: dict[str, str]) -> None:
        wanted = self._body()
        assert self.server.runs is not None
        self.server.runs.start(wanted)
        self._json({"run": self.server.runs.told()})

    def _stop(self, query: dict[str, str]) -> None:
        self._body()
        assert self.server.runs is not None
        self.server.runs.stop()
        self._json({"run": self.server.runs.told()})

    def _body(self) -> dict[str, Any]:
        """Return the JSON object that a page of ours sent.

        A page of another origin cannot send this type without asking first, and it knows no token.
        """
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type") != "application/json":
            raise UsageError("send application/json")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            raise UsageError("the request is too long, or does not say how long it is")
        try:
            document = json.loads(self.rfile.read(int(length)))
        except ValueError:
            raise UsageError("the request is not JSON") from None
        if not isinstance(document, dict):
            raise UsageError("the request is not a JSON object")
        return document

    # -- answers -----------------------------------------------------------------------------------

    def _json(self, document: Any) -> None:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self._send(HTTPStatus.OK, "application/json", text)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, "text/plain; charset=utf-8", why)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode("utf-8")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the terminal has the address, and errors."""


def in_background(explorer: Explorer) -> threading.Thread:
    """Serve in a thread, for tests and notebooks; ``explorer.shutdown()`` ends it."""
    thread = threading.Thread(target=explorer.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    return thread

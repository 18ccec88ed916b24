"""The server: loopback alone, one thread per connection, every answer guarded by the door."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.ui.answer import NOTHING, Answer
from hotlap.ui.door import HOST, METHODS, Door, Refused
from hotlap.ui.pages import Compare, Pages

__all__ = ["Server"]

IDLE_S = 30.0
"""A connection on which nothing comes is closed: it holds a thread."""
LONGEST_QUERY = 64
"""Fields of an address."""


class Server(ThreadingHTTPServer):
    """Serves the runs under ``root``. Raises HotlapError when the port cannot be had."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, root: Path, port: int, compare: Compare, tell: Callable[[str], None]) -> None:
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as err:
            why = getattr(err, "strerror", None) or str(err)
            hint = "Name another one, or leave --port out for any that is free."
            raise HotlapError(f"Cannot serve on port {port}: {why}.", hint, EXIT_USAGE) from err
        self.door = Door(self.server_address[1])
        self.pages = Pages(root, compare)
        self.tell = tell

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "hotlap"
    sys_version = ""
    timeout = IDLE_S
    wbufsize = -1
    disable_nagle_algorithm = True
    """Head and body leave at once: otherwise the second waits for the first to be acknowledged, 40 ms."""
    server: Server

    def _any(self) -> None:
        try:
            self._guarded()
        except Refused as refused:
            if refused.status != 404:
                self.close_connection = True  # what follows on it may be the body of what was refused
                self._send(Answer(f"{refused.why}\n".encode(), "text/plain; charset=utf-8", NOTHING, refused.status))
            else:
                self._send(self.server.pages.trouble(refused.why, 404))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as err:  # a mistake of ours: told where Hotlap was started, and the server goes on
            self.server.tell(f"{self.path}: {type(err).__name__}: {err}")
            self._send(self.server.pages.trouble("Hotlap made a mistake; the terminal says which.", 500))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _any

    def _guarded(self) -> None:
        door = self.server.door
        door.check_origin(self.command, self.headers)
        try:
            address = urlsplit(self.path)
            query = parse_qs(address.query, keep_blank_values=True, max_num_fields=LONGEST_QUERY)
        except ValueError as err:
            raise Refused(400, f"This is no address: {err}.") from err
        if not self.path.startswith("/") or self.path.startswith("//"):
            raise Refused(400, "This is no address of this server.")
        if door.admits(query):
            moved = Answer(b"", "text/plain; charset=utf-8", NOTHING, 303)
            self._send(moved, [("Location", "/"), ("Set-Cookie", door.set_cookie)])
            return
        if not door.knows(self.headers):
            raise Refused(403, "Open the address that `hotlap ui` printed: it has the key to this page in it.")
        self._send(self.server.pages.answer(address.path, query))

    def _send(self, answer: Answer, more: list[tuple[str, str]] | None = None) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if "sandbox" not in answer.policy:  # a sandboxed page is a stranger already, and browsers refuse both together
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        if answer.status == 405:
            self.send_header("Allow", ", ".join(METHODS))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in more or []:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: an address may hold the key, and the terminal is the user's."""

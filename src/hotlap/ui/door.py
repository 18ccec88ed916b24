"""Who may read: the browser of the person who was told the address, and no page of anybody else's in it.

What each check is against:

- the secret: other users and programs of this machine, to whom the port is as open as to its owner;
- ``Host``: a foreign name that was made to point at this machine (DNS rebinding);
- ``Origin`` and ``Sec-Fetch-Site`` (https://www.w3.org/TR/fetch-metadata/): a foreign page that sends the reader's
  browser here, which would bring the cookie of another port of ``localhost`` with it;
- the method: nothing here can be changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["HOST", "METHODS", "TOKEN", "Door", "Headers", "Refused"]

HOST = "127.0.0.1"
"""The one address that is listened on."""
NAMES = (HOST, "localhost")
METHODS = ("GET", "HEAD")
TOKEN = "token"
"""Name of the secret in an address."""
OWN_SITES = ("none", "same-origin")
"""``none``: the reader typed the address, or opened it from outside the browser."""
SECRET_BYTES = 32


class Headers(Protocol):
    """What is asked of a request's headers."""

    def get_all(self, name: str) -> list[str] | None: ...


@dataclass(eq=False)
class Refused(Exception):
    """A request that is not answered: the HTTP status, and why."""

    status: int
    why: str


class Door:
    """The secrets of one server, and the checks that every request passes."""

    def __init__(self, port: int) -> None:
        self._hosts = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
        self._origins = {f"http://{host}" for host in self._hosts}
        self._cookie_name = f"hotlap-ui-{port}"  # cookies know no ports: two servers of one reader shall not disturb
        self._cookie = secrets.token_urlsafe(SECRET_BYTES)
        self._token = secrets.token_urlsafe(SECRET_BYTES)
        self._once: set[str] = set()
        self._address = f"http://{HOST}:{port}/"

    @property
    def address(self) -> str:
        """Where to look, with the secret in it; it works for as long as the server runs."""
        return f"{self._address}?{TOKEN}={self._token}"

    def address_for_once(self) -> str:
        """The same with a secret that works once: whoever reads a browser's command line finds it used up."""
        ticket = secrets.token_urlsafe(SECRET_BYTES)
        self._once.add(ticket)
        return f"{self._address}?{TOKEN}={ticket}"

    def check_origin(self, method: str, headers: Headers) -> None:
        """Raises Refused for a request that came by another name, from another site, or wants to change something."""
        hosts = headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refused(403, "This server answers to its own address alone.")
        origins = headers.get_all("Origin") or []
        if any(origin not in self._origins for origin in origins):
            raise Refused(403, "Another site's page has no business here.")
        sites = headers.get_all("Sec-Fetch-Site") or []
        if any(site not in OWN_SITES for site in sites):
            raise Refused(403, "This page is not opened from another site: copy the address into the browser.")
        if method not in METHODS:
            raise Refused(405, "Nothing here can be changed: only GET and HEAD are answered.")
        if headers.get_all("Transfer-Encoding") or any(size != "0" for size in headers.get_all("Content-Length") or []):
            raise Refused(400, "A request with a body is not read.")

    def admits(self, query: Mapping[str, list[str]]) -> bool:
        """Whether the address carries the secret. One that works once is used up by this."""
        given = query.get(TOKEN, [])
        if len(given) != 1:
            return False
        if _same(given[0], self._token):
            return True
        found = next((ticket for ticket in self._once if _same(given[0], ticket)), None)
        self._once.discard(found or "")
        return found is not None

    def knows(self, headers: Headers) -> bool:
        """Whether the request brings the cookie that an admitted one was given."""
        cookies = [part.strip() for header in headers.get_all("Cookie") or [] for part in header.split(";")]
        own = f"{self._cookie_name}="
        return any(_same(cookie.removeprefix(own), self._cookie) for cookie in cookies if cookie.startswith(own))

    @property
    def set_cookie(self) -> str:
        """The header that gives it: no script reads it, no other site's page sends it, closing the browser ends it."""
        return f"{self._cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"


def _same(given: str, wanted: str) -> bool:
    """Compared in constant time, whatever characters were given."""
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())

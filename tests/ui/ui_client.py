"""A server over a folder of made runs, and a client that asks it as a browser would, or as one should not."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hotlap.cli.comparing import compare_folders
from hotlap.ui.server import Server


@dataclass
class Client:
    """Asks one server; ``told`` is what the server told in its terminal."""

    server: Server
    root: Path
    told: list[str]
    cookie: str = ""

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers (names in lower case), text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Host": f"127.0.0.1:{self.port}", **({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(body.encode() if body else None)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def enter(self) -> None:
        """Exchange the address for the cookie."""
        address = urlsplit(self.server.door.address)
        status, headers, _ = self.ask(f"/?{address.query}")
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]

    def page(self, path: str) -> str:
        """A page that has to be there."""
        status, _, text = self.ask(path)
        assert status == 200, text
        return text


def serve(root: Path) -> Iterator[Client]:
    told: list[str] = []
    with Server(root, 0, compare_folders, told.append) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield Client(server, root, told)
        finally:
            server.shutdown()
            thread.join()

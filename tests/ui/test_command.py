"""``hotlap ui`` itself: what it prints, what it opens, how it ends, and what it says when it cannot."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hotlap.cli.main import main
from hotlap.ui.server import Server


def as_in_a_terminal() -> None:
    """Where the tests run in the background, Ctrl-C is ignored, and so it would be by what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_it_prints_an_address_that_works_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hotlap", "ui", "--no-browser"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        address = urlsplit(found[0])
        connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=20)
        connection.request("GET", f"/?{address.query}")
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors == ""
    assert not os.listdir(tmp_path)  # nothing is made, not even the folder


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ctrl-C comes before the first request; addresses that a browser was opened with."""
    opened: list[str] = []
    before = set(threading.enumerate())

    def serve(self: Server, poll_interval: float = 0.5) -> None:
        for thread in set(threading.enumerate()) - before:
            thread.join(5)  # the browser is opened beside
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", serve)
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    return opened


def test_a_browser_is_opened_where_there_is_a_display_with_a_key_of_its_own(
    at_once: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert main(["ui", "--runs", str(tmp_path)]) == 0
    printed = re.search(r"http://\S+", capsys.readouterr().out)
    assert printed is not None and len(at_once) == 1
    assert at_once[0].split("=")[0].startswith("http://127.0.0.1:") and at_once[0] != printed[0]
    assert main(["ui", "--runs", str(tmp_path), "--no-browser"]) == 0
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main(["ui", "--runs", str(tmp_path)]) == 0
    assert len(at_once) == 1


def test_a_browser_that_is_waited_for_is_answered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that is no graphical browser holds whoever opens it until it is closed."""
    serving: list[Server] = []
    answers: list[int] = []
    genuine = Server.serve_forever

    def serve(self: Server, poll_interval: float = 0.5) -> None:
        serving.append(self)
        genuine(self, 0.02)

    def browse(address: str) -> bool:
        found = urlsplit(address)
        connection = http.client.HTTPConnection("127.0.0.1", found.port or 0, timeout=5)
        try:
            connection.request("GET", f"/?{found.query}")
            answers.append(connection.getresponse().status)
        finally:
            connection.close()
            for server in serving:
                server.shutdown()
        return True

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(Server, "serve_forever", serve)
    monkeypatch.setattr(webbrowser, "open", browse)
    assert main(["ui", "--runs", str(tmp_path)]) == 0
    assert answers == [303]


def test_a_folder_that_is_not_there_and_a_port_that_is_taken_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["ui", "--runs", str(tmp_path / "none")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["ui", "--runs", str(tmp_path), "--no-browser", "--port", str(port)]) == 2
    assert f"Cannot serve on port {port}" in capsys.readouterr().err

"""Who is let in: the secret, the cookie, the names and the sites that a request comes from."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest
from ui_client import Client

from hotlap.records.run import RunRecord
from hotlap.testing.run_folders import made_run


def key(address: str) -> str:
    return "/?" + urlsplit(address).query


def test_the_address_is_exchanged_for_a_cookie_that_no_script_reads(stranger: Client) -> None:
    assert stranger.ask("/")[0] == 403
    status, headers, _ = stranger.ask(key(stranger.server.door.address))
    assert status == 303 and headers["location"] == "/"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(headers["set-cookie"].split("; "))
    stranger.cookie = headers["set-cookie"].partition(";")[0]
    assert "No runs here yet" in stranger.page("/")


@pytest.mark.parametrize("token", ["", "x", "ü", "%00", "a&token=b"])
def test_a_wrong_key_opens_nothing(stranger: Client, token: str) -> None:
    from urllib.parse import quote

    status, headers, _ = stranger.ask(f"/?token={quote(token, safe='%&=')}")
    assert status == 403 and "set-cookie" not in headers


def test_a_wrong_cookie_opens_nothing_and_the_cookie_of_another_port_is_none(client: Client) -> None:
    name, _, value = client.cookie.partition("=")
    for cookie in (f"{name}=x", f"{name}=", f"other={value}", f"{name}x={value}", value):
        assert client.ask("/", headers={"Cookie": cookie})[0] == 403, cookie
    assert client.ask("/", headers={"Cookie": f'jupyter="a,b c"; {client.cookie}; more'})[0] == 200


def test_the_key_for_the_browser_that_is_opened_works_once(stranger: Client) -> None:
    once = key(stranger.server.door.address_for_once())
    assert once != key(stranger.server.door.address)
    assert stranger.ask(once)[0] == 303
    assert stranger.ask(once)[0] == 403
    assert stranger.ask(key(stranger.server.door.address))[0] == 303


HOSTS = (
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}",
    "127.0.0.1.evil.example:{port}", "[::1]:{port}", "",
)  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_name_is_refused_whatever_it_points_to(client: Client, host: str) -> None:
    for path in ("/", key(client.server.door.address)):
        status, headers, _ = client.ask(path, headers={"Host": host.format(port=client.port)})
        assert status == 403 and "set-cookie" not in headers


def test_localhost_is_a_name_of_ours(client: Client) -> None:
    assert client.ask("/", headers={"Host": f"localhost:{client.port}"})[0] == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
                                     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])  # fmt: skip
def test_another_sites_page_is_refused_even_with_the_cookie_and_the_key(
    client: Client, headers: dict[str, str]
) -> None:
    assert client.ask("/", headers=headers)[0] == 403
    assert client.ask(key(client.server.door.address), headers=headers)[0] == 403


def test_our_own_page_is_not(client: Client) -> None:
    own = {"Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin"}
    assert client.ask("/", headers=own)[0] == 200
    assert client.ask("/", headers={"Sec-Fetch-Site": "none"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(client: Client, method: str) -> None:
    status, headers, _ = client.ask("/", method, {"Content-Length": "3"}, "a=b")
    assert status == 405 and headers["allow"] == "GET, HEAD" and headers["connection"] == "close"


def test_a_get_with_a_body_is_refused_and_what_follows_is_not_taken_for_a_request(client: Client) -> None:
    smuggled = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nCookie: {client.cookie}\r\n\r\n"
    head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: {len(smuggled)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall((head + smuggled).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 400") and answer.count("HTTP/1.1") == 1


def test_two_host_headers_are_refused(client: Client) -> None:
    lines = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nHost: evil.example\r\nCookie: {client.cookie}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(lines.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 403")


def test_head_has_no_body(client: Client) -> None:
    status, headers, text = client.ask("/", "HEAD")
    assert status == 200 and int(headers["content-length"]) > 500 and not text


def test_it_listens_on_this_machine_alone(client: Client) -> None:
    assert client.server.server_address[0] == "127.0.0.1"


def test_every_answer_says_what_a_browser_may_do_with_it(client: Client) -> None:
    made_run(client.root, "20260101-000000-train", RunRecord("run", ["python", "train.py"], "2026-01-01 00:00:00"))
    for path in ("/", "/run/20260101-000000-train", "/run/20260101-000000-train/now",
                 "/run/20260101-000000-train/report", "/ui.css", "/ui.js", "/none", "/compare"):  # fmt: skip
        _, headers, text = client.ask(path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
        assert "script-src 'unsafe" not in policy and "unsafe-eval" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        if path.endswith("/now"):
            assert json.loads(text)["status"].startswith("running")
    assert client.told == []

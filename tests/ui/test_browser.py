"""The page in a real Chromium: by keyboard, light and dark, on a phone's width, and with other sites at the door.

Skipped where there is none: pip install playwright (extra `browser`), and a Chromium on PATH.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ui_client import Client, serve

from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import LeverResult
from hotlap.testing.run_folders import made_findings, made_run, made_timeline

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
PHONE = {"width": 360, "height": 740}
MARKUP = '<img src=x onerror="document.title=`hacked`"><script>document.title="hacked"</script>'
LONG = "20260401-000000-long"
ENDED = "20260301-000001-train"
NASTY = "20260302-000000-nasty"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `browser`)")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on PATH")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two hundred runs, one of them of a million steps and still going on, one full of markup."""
    root = tmp_path_factory.mktemp("ui") / "runs"
    for n in range(198):
        run = RunRecord("diagnose", ["python", f"train{n % 3}.py"], f"2026-03-01 00:{n // 60:02}:{n % 60:02}",
                        status="finished")  # fmt: skip
        made_run(root, f"20260301-{n:06d}-train", run, made_findings(step_s=0.1 + n / 1000))
    nasty = RunRecord("run", ["python", MARKUP], "2026-03-02 00:00:00", status="failed", notes=[MARKUP])
    made_run(root, NASTY, nasty, made_findings(cause=MARKUP, detail=MARKUP, file="x" * 300))
    made_timeline(made_run(root, LONG, RunRecord("run", ["python", "long.py"], "2026-04-01 00:00:00")), 1_000_000)
    yield from serve(root)


@pytest.fixture
def page(chromium: Any, site: Client) -> Iterator[Any]:
    """A tab of somebody who has opened the address. A page that throws, or runs the users' markup, fails the test."""
    context = chromium.new_context()
    context.set_default_timeout(10_000)
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(site.server.door.address)
    yield tab
    context.close()
    assert errors == [] and site.told == []


def test_the_list_works_by_keyboard(page: Any, site: Client) -> None:
    assert page.locator(".runs tbody tr").count() == 200 and "token" not in page.url
    focused = "document.activeElement.outerHTML.slice(0, 90)"
    page.keyboard.press("Tab")
    assert "skip" in page.evaluate(focused) and page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Tab")
    assert 'class="home"' in page.evaluate(focused)
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.type("train1 00:00:0")
    assert page.locator(".runs tbody tr:visible").count() == 3
    assert page.locator("#count").inner_text() == "3 of 200"
    assert page.locator("#compare").is_disabled()
    for _ in range(2):
        page.keyboard.press("Tab")
        assert 'type="checkbox"' in page.evaluate(focused)
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "A"
    assert page.locator("#compare").is_enabled()
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/*")
    page.goto(f"http://127.0.0.1:{site.port}/")
    page.locator("#q").fill("train1")
    for box in page.locator("input[type=checkbox]:visible").all()[:2]:
        box.check()
    page.locator("#compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?*")
    assert "B is" in page.locator(".verdict").inner_text() or "No difference" in page.locator(".verdict").inner_text()


def test_a_run_of_a_million_steps_opens_and_its_numbers_move(page: Any, site: Client) -> None:
    page.goto(f"http://127.0.0.1:{site.port}/run/{LONG}")
    assert page.locator("[data-fact=steps]").inner_text() == "1,000,000"
    points = page.locator("#chart polyline").get_attribute("points").split()
    assert 500 < len(points) <= 1000
    page.get_by_role("link", name="Refresh").focus()
    with open(site.root / LONG / "timelines" / "run" / "100.jsonl", "a") as file:
        file.write('{"k":"step","i":1000000,"n":7,"t":90000000000000,"w":700000000,"p":[700000000,0,0,0,0,0,0,0,0,0,0,0],'
                   '"s":7,"m":7,"mx":100000000}\n')  # fmt: skip
    page.locator("[data-fact=steps]", has_text="1,000,007").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Refresh"  # new numbers take no focus away
    RunFolder(site.root / LONG).write("levers.json", [])
    page.get_by_text("There is more of this run now").wait_for()


PATHS = (
    "/", f"/run/{LONG}", f"/run/{ENDED}", f"/run/{NASTY}", "/run/none", f"/compare?run={ENDED}&run={NASTY}",
    f"/run/{ENDED}/report",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_scrolls_one_way_only(page: Any, site: Client, path: str) -> None:
    folder = RunFolder(site.root / ENDED)
    folder.write("levers.json", [LeverResult("a-lever", {}, "bits", None, None, False, "failed: " + "why " * 30)])
    page.set_viewport_size(PHONE)
    page.goto(f"http://127.0.0.1:{site.port}{path}")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.title() != "hacked"


def test_the_filter_hides_rows_on_a_phone_too(page: Any, site: Client) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"http://127.0.0.1:{site.port}/")
    page.locator("#q").fill("train1 00:00:0")
    assert page.locator("#count").inner_text() == "3 of 200"
    assert page.locator(".runs tbody tr:visible").count() == 3


CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let least = 99, where = "";
  for (const e of document.querySelectorAll("h1, p, a, th, td, dt, dd, button:enabled, .badge, .muted, label, code")) {
    if (!e.textContent.trim() || !e.offsetWidth) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) { least = ratio; where = e.outerHTML.slice(0, 120); }
  }
  return [least, where];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_the_light_and_in_the_dark(page: Any, site: Client, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for path in ("/", f"/run/{LONG}", f"/compare?run={ENDED}&run=20260301-000197-train"):
        page.goto(f"http://127.0.0.1:{site.port}{path}")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) > 380) == (scheme == "light")
        least, where = page.evaluate(CONTRAST)
        assert least >= 4.5, (path, where)  # WCAG 2.2, 1.4.3


def test_a_report_is_a_stranger_whose_own_script_alone_runs(page: Any, site: Client) -> None:
    page.goto(f"http://127.0.0.1:{site.port}/run/{ENDED}/report")
    assert page.evaluate("document.documentElement.classList.contains('js')")
    planted = site.root / ENDED / "report.html"
    planted.write_text('<p id="p">as it lies</p><script>document.getElementById("p").textContent = "hacked"</script>')
    page.goto(f"http://127.0.0.1:{site.port}/run/{ENDED}/report")
    assert page.locator("#p").inner_text() == "as it lies"
    planted.unlink()


def test_without_scripts_the_list_filters_and_leads_on(chromium: Any, site: Client) -> None:
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(site.server.door.address)
    tab.locator("#q").fill("long.py")
    tab.locator("#q").press("Enter")
    tab.locator(".runs a").click()
    assert "1,000,0" in tab.locator("[data-fact=steps]").inner_text()
    context.close()


class _Elsewhere(BaseHTTPRequestHandler):
    """Another site's page, which knows the port and tries what a page can."""

    def do_GET(self) -> None:
        target = f"http://127.0.0.1:{self.path[1:]}/"
        text = f"""<!doctype html><iframe src="{target}"></iframe><img src="{target}ui.css"><script>
            fetch("{target}", {{credentials: "include"}}).then(a => a.text()).then(t => document.title = "read " + t,
              () => document.title = "refused")</script><a id="link" href="{target}">look</a>"""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_another_sites_page_gets_nothing_though_the_browser_has_the_cookie(page: Any, site: Client, name: str) -> None:
    page.goto(f"http://127.0.0.1:{site.port}/")
    answered: list[str] = []
    genuine = site.server.pages.answer
    site.server.pages.answer = lambda path, query: answered.append(path) or genuine(path, query)  # type: ignore
    with ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        tab = page.context.new_page()
        tab.goto(f"http://{name}:{elsewhere.server_address[1]}/{site.port}")
        tab.wait_for_function("document.title")
        assert tab.title() == "refused"
        tab.locator("#link").click()
        tab.get_by_text("not opened from another site").wait_for()
        elsewhere.shutdown()
    site.server.pages.answer = genuine  # type: ignore[method-assign]
    assert answered == []

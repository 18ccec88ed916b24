"""The documentation as a site: it builds without a warning, and asks nothing of the network."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NEEDED = ("sphinx", "myst_parser", "furo")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. A dead link, an unknown heading, a page in no part of it: each is a warning, and ends the build."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} not installed: `make setup`, or the extra `docs`")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_in_the_margin_of_the_site(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    margin = home[home.index("sidebar-tree") : home.index("<article")]
    pages = [path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")]
    missing = [page for page in pages if page != "index.html" and f'href="{page}"' not in margin]
    assert len(pages) > 30 and not missing


def test_raw_results_come_with_the_site(site: Path) -> None:
    results = (site / "results.html").read_text(encoding="utf-8")
    linked = re.findall(r'href="(_downloads/[^"]+\.json)"', results)
    raw = DOCS.parent / "bench" / "results"
    assert {Path(link).name for link in linked} == {path.name for path in raw.glob("*.json")}
    assert all((site / link).read_bytes() == (raw / Path(link).name).read_bytes() for link in linked)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = [
        (path.name, tag)
        for path in site.rglob("*.html")
        for tag in re.findall(r"<(?:script|link|img|iframe)[^>]*https?://[^>]*>", path.read_text(encoding="utf-8"))
    ]
    assert not loaded

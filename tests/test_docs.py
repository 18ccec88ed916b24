"""Generated pages are up to date, links lead somewhere, commands exist, and the home page knows every page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "docs" / "index.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


OTHER_HELP = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help differently in other versions"
)


@pytest.mark.parametrize("tool", [pytest.param("reference_docs.py", marks=OTHER_HELP), "results_page.py"])
def test_generated_pages_are_up_to_date(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_home_page_links_to_every_page() -> None:
    targets = re.findall(r"\]\(([^)#\s]+\.md)\)", HOME.read_text(encoding="utf-8"))
    linked = {(HOME.parent / target).resolve() for target in targets}
    missing = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if page not in {HOME, *linked}]
    assert not missing, f"docs/index.md has no link to {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_pages_parse(page: Path) -> None:
    """Every ``hotlap …`` line of a code block, a notebook's and one behind ``srun`` too, is a command that the parser
    knows, with options that it has."""
    from hotlap.cli.main import build_parser, split_command

    parser = build_parser()
    for block in re.findall(r"```(?:sh|bash|console|python)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            words = re.match(r"^(?:\$\s*|!|srun\s+(?:-\S+\s+)*)?hotlap\s+(.+?)\s*(?:#.*)?$", line)
            if words is None:
                continue
            ours, _ = split_command(words[1].split())
            parser.parse_args(ours)

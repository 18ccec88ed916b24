"""Render a report (or any local HTML file) into PNGs with the Chromium found on PATH.

python tools/screenshot.py report.html out/            # desktop and phone, light and dark
python tools/screenshot.py report.html out/ --only desktop-light --height 900
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWS = {
    "desktop-light": (1280, False),
    "desktop-dark": (1280, True),
    "phone-light": (390, False),
    "phone-dark": (390, True),
}


def browser() -> str:
    """Path of a Chromium-like browser."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    sys.exit("No Chromium found on PATH. On Debian: apt-get install chromium")


def shoot(page: Path, out: Path, width: int, dark: bool, height: int) -> None:
    """One picture. A headless window cannot be narrower than 500 px, so a phone is an iframe in a wider window."""
    with tempfile.TemporaryDirectory() as scratch:
        target = page.resolve().as_uri()
        if width < 500:
            frame = Path(scratch, "frame.html")
            frame.write_text(
                '<!doctype html><meta name="color-scheme" content="light dark">'
                '<body style="margin:0;background:#8b9096">'
                f'<iframe src="{target}" style="border:0;display:block;margin:auto;width:{width}px;height:{height}px">'
            )
            target = frame.as_uri()
        command = [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={scratch}/profile",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={max(width, 500)},{height}",
            "--force-device-scale-factor=1",
            f"--screenshot={out}",
            target,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0 or not out.exists():
            sys.exit(f"{command[0]} failed with exit code {done.returncode}:\n{done.stderr[-2000:]}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--only", choices=VIEWS, help="one view instead of all four")
    parser.add_argument("--height", type=int, default=1600, help="pixels (default 1600)")
    arguments = parser.parse_args()
    if not arguments.page.is_file():
        sys.exit(f"There is no file {arguments.page}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, (width, dark) in VIEWS.items():
        if arguments.only in (None, name):
            picture = arguments.out / f"{arguments.page.stem}-{name}.png"
            shoot(arguments.page, picture, width, dark, arguments.height)
            print(picture)


if __name__ == "__main__":
    main()

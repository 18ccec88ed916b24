"""Look at the runs in a browser: the list, one run while it goes on, two runs side by side, reports.

The page is served on this machine alone (127.0.0.1), to whoever has the address that is printed: the key is in it.
Nothing can be started or changed there. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from pathlib import Path

from hotlap.cli.comparing import compare_folders
from hotlap.cli.saved import kept_runs
from hotlap.records.run_folder import ROOT
from hotlap.ui.server import Server

NAME = "ui"
HELP = "look at the runs in a browser"
ORDER = 7
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap ui``."""
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")
    parser.add_argument("--port", metavar="PORT", type=_port, default=0, help="default: any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (1 to 65535)")
    return int(text)


def execute(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    kept_runs(args.runs)  # before a browser opens on a folder that is not there
    with Server(args.runs or Path(ROOT), args.port, compare_folders, _tell) as server:
        print(f"hotlap: the runs under {args.runs or ROOT} are at {server.door.address}", flush=True)
        print("        Whoever has this address can read them, on this machine alone. Ctrl-C ends it.", flush=True)
        if not args.no_browser and _has_display():  # beside the server: some browsers hold whoever opens them
            threading.Thread(target=_browse, args=(server.door.address_for_once(),), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def _browse(address: str) -> None:
    if not webbrowser.open(address):
        _tell("no browser could be opened: copy the address into one")


def _has_display() -> bool:
    """Whether a window could open; without one, a browser would take over the terminal."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _tell(text: str) -> None:
    print(f"hotlap: {text}", file=sys.stderr, flush=True)

"""Options of the guard, and where its lines go.

A line to stderr is the only thing that the guard does to the script's terminal: a display that is redrawn would fight
with whatever the script prints there (a progress bar, a partial line), and neither of the two can know where the cursor
stands. The display that changes is `hotlap watch`, in a terminal of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable

from hotlap.guard.earlier import look_back
from hotlap.guard.guard import Guard, Wishes
from hotlap.guard.hook import Hook
from hotlap.guard.metrics import MetricsServer, exposition
from hotlap.guard.status import Status
from hotlap.inject.run_script import name_of
from hotlap.records.machine import Machine
from hotlap.records.run_folder import RunFolder
from hotlap.report.guard_status import Shown, status_line

__all__ = ["add_guarding", "guard_for", "say", "shown"]


def add_guarding(parser: argparse.ArgumentParser) -> None:
    """``--status``, ``--on-drift``, ``--metrics``, ``--no-export``, ``--no-guard``."""
    parser.add_argument(
        "--status",
        choices=("auto", "always", "never"),
        default="auto",
        help="a line on stderr once a minute: how the run goes (default: only where stderr is a terminal)",
    )
    parser.add_argument("--total-steps", metavar="N", type=_positive, help="steps of the whole run, for the time left")
    parser.add_argument(
        "--on-drift",
        metavar="CMD",
        help="run this shell command once per drift; the facts are in HOTLAP_DRIFT_* variables",
    )
    parser.add_argument(
        "--metrics", metavar="PORT", type=_port, help="serve metrics for Prometheus at /metrics (0: any free port)"
    )
    parser.add_argument(
        "--metrics-host", metavar="HOST", default="127.0.0.1", help="address to serve on (default: this machine alone)"
    )
    parser.add_argument(
        "--no-export",
        action="store_true",
        help="add no hotlap/ series to the TensorBoard, W&B or MLflow run that the script itself makes",
    )
    parser.add_argument("--no-guard", action="store_true", help="do not watch for steps that get slower")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps (1 or more)")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def say(text: str) -> None:
    """One line to stderr, in one write. A stderr that is gone is no reason to disturb the run."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"hotlap: {text}\n")
        sys.stderr.flush()


def shown(status: Status, script: str, ended: str = "") -> Shown:
    """A status as it is shown."""
    return Shown(
        script=script, steps=status.steps, step_s=status.step_s, samples_per_s=status.samples_per_s,
        roof_share=status.roof_share, phases=status.phases, rss_bytes=status.rss_bytes,
        children_rss_bytes=status.children_rss_bytes, device_bytes=status.device_bytes, device=status.device,
        train_s=status.train_s, left_s=status.left_s, drift=status.drift, ended=ended,
        silent_s=status.last_step_age_s if status.step_s is None else None,
    )  # fmt: skip


def guard_for(args: argparse.Namespace, folder: RunFolder, machine: Machine, command: list[str]) -> Guard | None:
    """The guard that was asked for; None: none. Raises HotlapError when its port cannot be had."""
    if args.no_guard:
        return None
    script = name_of(command)
    earlier = look_back(command, args.runs, folder, total=args.total_steps)

    def print_status(status: Status) -> None:
        if status.steps:
            say(status_line(shown(status, script)))

    def serve(ask: Callable[[], Status]) -> MetricsServer:
        return MetricsServer(args.metrics_host, args.metrics, lambda: exposition(ask(), script))

    wanted = args.status == "always" or (args.status == "auto" and sys.stderr.isatty())
    guard = Guard(
        folder,
        machine,
        Wishes(
            say=say,
            status=print_status if wanted else None,
            hook=Hook(args.on_drift, folder.path) if args.on_drift else None,
            metrics=serve if args.metrics is not None else None,
            export=not args.no_export,
            earlier=earlier,
        ),
    )
    if guard.address is not None:
        say(f"metrics at {guard.address}")
    return guard

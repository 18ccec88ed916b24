"""``hotlap``: parses the command line, hands over to one file per command, turns errors into one clear message."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, ModuleType

from hotlap import __version__
from hotlap.cli import commands
from hotlap.inject.run_script import Signalled
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["build_parser", "main", "split_command"]

EXIT_INTERRUPTED = Signalled(128 + signal.SIGINT)
EXIT_TERMINATED = Signalled(128 + signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a scheduler's, or that of ``kill``."""


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Ours and theirs: everything after the first ``--`` belongs to the user's command and is never parsed."""
    if "--" in arguments:
        at = list(arguments).index("--")
        return list(arguments[:at]), list(arguments[at + 1 :])
    return list(arguments), None


def _commands(chosen: str | None) -> list[ModuleType]:
    """The command that was chosen, alone: importing the others takes a second. All of them for any other word."""
    names = sorted(m.name for m in pkgutil.iter_modules(commands.__path__))
    if chosen in names:
        names = [chosen]
    modules = [importlib.import_module(f"hotlap.cli.commands.{name}") for name in names]
    return sorted(modules, key=lambda m: m.ORDER)


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser with every command that lies in ``cli/commands``, or the ``chosen`` one alone."""
    parser = argparse.ArgumentParser(
        prog="hotlap",
        description="Find what makes a PyTorch training slow, take it away by measurement, and prove it.",
        epilog="What follows `--` is your command, run unmodified:  hotlap speedup -- python train.py --data clips",
    )
    parser.add_argument("--version", action="version", version=f"hotlap {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _commands(chosen):
        summary = (module.__doc__ or "").strip().splitlines()[0]
        sub = subparsers.add_parser(
            module.NAME, help=module.HELP, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(sub)
        sub.set_defaults(execute=module.execute, takes_command=module.TAKES_COMMAND)
    return parser


def _without_dashes(ours: list[str], at: int) -> HotlapError:
    """The user's command begins at ``at``. It is only suggested: options of both may be mixed in it."""
    command = shlex.join(ours[at:])
    right = f"hotlap {shlex.join(ours[:at])} -- {command}"
    what = f"{command} stands where Hotlap's own options stand."
    return HotlapError(what, f"Put your command after `--`: {right}", EXIT_USAGE)


def _open_closed_streams() -> None:
    """What was closed (``2>&-``) leads nowhere, and nothing that is told there may end up elsewhere or fail.

    The script finds it closed all the same: it inherits no file that Python opened.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the life of the process


@contextmanager
def _heeding_sigterm() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: processes are stopped, what was seen is written. Unless it is ignored."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated

    ours = threading.current_thread() is threading.main_thread()  # another may set no handler
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Of a Ctrl-C the program dies, as the script would: else a shell's loop of
    trainings would go on with the next."""
    _open_closed_streams()
    with _heeding_sigterm():
        code = _main(arguments)
    if arguments is None and isinstance(code, Signalled) and code.number == signal.SIGINT and os.name == "posix":
        with suppress(OSError, ValueError):  # closed, or its reader has gone
            sys.stdout.flush()
            sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _main(arguments: Sequence[str] | None) -> int:
    ours, theirs = split_command(sys.argv[1:] if arguments is None else arguments)
    try:
        parser = build_parser(ours[0] if ours else None)  # importing a command takes a while, and Ctrl-C may come
        args, unknown = parser.parse_known_args(ours)
        if unknown and args.takes_command and theirs is None and not unknown[0].startswith("-"):
            raise _without_dashes(ours, ours.index(unknown[0]))
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        if theirs is not None and not args.takes_command:
            what = f"`hotlap {args.command}` takes no command after `--`."
            raise HotlapError(what, "Leave `--` and what follows it away.", EXIT_USAGE)
        args.script = theirs or []
        code: int = args.execute(args)
        return code
    except HotlapError as err:
        print(f"hotlap: {err.what}", file=sys.stderr)
        if err.hint:
            print(f"        {err.hint}", file=sys.stderr)
        return err.exit_code
    except BrokenPipeError:  # the reader of a pipe has gone (| head)
        sys.stderr.close()
        return 1
    except KeyboardInterrupt as err:
        print("hotlap: interrupted; every process of ours has been stopped.", file=sys.stderr)
        return EXIT_TERMINATED if isinstance(err, Terminated) else EXIT_INTERRUPTED

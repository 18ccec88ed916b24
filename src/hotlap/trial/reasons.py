"""Why an arm ended, in one sentence, from its exit status and the end of its output."""

from __future__ import annotations

import errno
import re
import shutil
import signal
from pathlib import Path

from hotlap.records.trials import OUT_OF_MEMORY
from hotlap.trial import sandbox

__all__ = ["disk_full", "explain", "last_error", "oom_kills", "tail_of"]

TAIL_BYTES = 32768
FULL_BYTES = 1 << 20
ERROR = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Failure)\b(?::.*)?$")
RANK = re.compile(r"^\[rank\d+\]:\s*")
"""What torch puts before each line of a traceback once there is a process group."""
COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""What terminals take for colours, links and titles (ECMA-48, control sequences and operating system commands)."""
FULL_STOP = re.compile(r"(?<!\.)\.$")
LAUNCHER = "ChildFailedError"
"""What torchrun ends with, behind the errors of its ranks: it does not say what happened."""
USAGE = 2
"""Exit code of Python for a script that is not there, and of argparse: both say why in their last line, and no more."""
REFUSED = ("OutOfMemoryError", "CUDA out of memory", "CUDA error: out of memory", "DefaultCPUAllocator: can't allocate",
           "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")  # fmt: skip
"""Say it in any line, where no line is an error's own: a script that ends by itself may have logged it."""
NO_MEMORY = (*REFUSED, "MemoryError", "out of memory", "can't allocate memory", "Cannot allocate memory")
"""Say it in an error's own line: another rank's error, or one that followed, may come behind."""
KILLED = re.compile(r"SIGKILL|\bexitcode\s*: -9\b|return code = -9\b|on signal 9\b|: Killed\b")
"""How launchers and loaders tell that one of their processes was ended at once; they end with a code of their own."""
THROWN = ("terminate called after throwing", "what():")
"""How C++ tells an exception that nobody caught."""


def tail_of(output: Path) -> str:
    """End of what the script printed; empty when there is nothing."""
    try:
        with open(output, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def last_error(text: str) -> str | None:
    """Last line of the last traceback, shortened."""
    found = [line for line in _lines(text) if ERROR.match(line)]
    said = [line for line in found if LAUNCHER not in line.partition(":")[0]] or found
    return FULL_STOP.sub("", said[-1])[:200] if said else None


def _memory_error(text: str) -> str | None:
    """The last line that says that there was no memory left."""
    lines = _lines(text)
    errors = [line for line in lines if ERROR.match(line) or line.startswith(THROWN)]
    said = [line for line in errors or lines if any(words in line for words in (NO_MEMORY if errors else REFUSED))]
    return said[-1][:200] if said else None


def _lines(text: str) -> list[str]:
    return [RANK.sub("", line.strip()) for line in COLOURS.sub("", text).splitlines()]


def oom_kills() -> int:
    """How many processes the kernel has ended for want of memory since boot; 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def explain(exit_code: int, text: str, *, sandboxed: bool, memory_kill: bool, disk_full: bool = False) -> str:
    """One sentence without a full stop. ``exit_code``: negative for a signal; ``text``: end of the output."""
    error, memory_error = last_error(text), _memory_error(text)
    if exit_code == sandbox.FAILED and sandbox.SAYS in text:
        return "no sandbox: " + text.rpartition(sandbox.SAYS)[2].splitlines()[0]
    if exit_code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return f"{OUT_OF_MEMORY}: the kernel ended it" if memory_kill else "ended by SIGKILL"
    if memory_error is not None:
        return f"{OUT_OF_MEMORY}: {memory_error}"
    if memory_kill and KILLED.search(text):
        return f"{OUT_OF_MEMORY}: the kernel ended one of its processes"
    if "No space left on device" in text and disk_full:
        return "the disk of the run folder is full (free some space, or pass --runs DIR)"
    if "No space left on device" in text and sandboxed:
        return "scratch full: the script wrote more than the sandbox may hold (pass --scratch DIR on a disk with room)"
    if error is not None and error.startswith("EOFError"):
        return f"asked for input, and a trial has none: {error}"
    if error is not None and error.startswith("OSError") and f"[Errno {errno.ENOTTY}]" in error:
        return f"asked its output for the size of a terminal, and a trial's goes to a file: {error}"
    if "Value too large for defined data type" in text and sandboxed:
        return "it writes to a file or folder of another user, which a sandbox without root cannot cover"
    if error is None and exit_code == USAGE:
        error = next((line[:200] for line in reversed(_lines(text)) if line), None)
    if exit_code < 0:
        return f"ended by {_signal_name(-exit_code)}" + (f": {error}" if error else "")
    return f"crashed with exit code {exit_code}" + (f": {error}" if error else "")


def disk_full(folder: Path) -> bool:
    """Whether the file system of ``folder`` has next to nothing left; of a folder that is gone nobody knows."""
    try:
        return shutil.disk_usage(folder).free < FULL_BYTES
    except OSError:
        return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

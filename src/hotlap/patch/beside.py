"""Calls in a source that may count on what a replaced call has done when it returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotlap.patch.readers import full_name, full_names
from hotlap.patch.source import Source, Unwritable, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["refuse_beside"]

_NAMES = {
    "save_later": {
        "torch.load", "os.replace", "os.rename", "os.remove", "os.link", "os.access", "os.stat", "os.walk", "os.system",
        "os.fork", "os.kill", "os.killpg", "os.abort", "os.execv", "os.execve", "os.execvp", "os.posix_spawn",
        "os.chmod", "os.chown", "os.utime", "os.truncate", "signal.raise_signal", "signal.pthread_kill",
        "shutil.copy", "shutil.move", "shutil.make_archive", "subprocess.run", "subprocess.call",
        "wandb.save", "multiprocessing.Process", "multiprocessing.Pool", "torch.multiprocessing.Process",
        "torch.multiprocessing.spawn", "torch.multiprocessing.Pool",
    }
}  # fmt: skip
_METHODS = {
    "save_later": {
        "barrier", "monitored_barrier", "wait_for_everyone", "all_reduce", "broadcast_object_list", "all_gather_object",
        "gather_object", "exists", "isfile", "is_file", "getsize", "getmtime", "listdir", "scandir", "iterdir", "glob",
        "iglob", "rglob", "unlink", "symlink", "symlink_to", "hardlink_to", "copyfile", "copy2", "copytree", "rename",
        "Popen", "check_call", "check_output", "ProcessPoolExecutor", "_exit", "read_bytes", "log_artifact",
        "log_artifacts", "save_artifact", "add_file", "add_dir", "log_model", "put_object", "fput_object", "put_file",
        "push_to_hub", "sendfile", "copyfileobj", "scp",
    }
}  # fmt: skip
"""By the last name alone: of whatever module or object."""
_MODE = re.compile(r"(['\"])[rwax][bt]?\+?[bt]?\1")
_WRITING = [quote + mode for quote in "'\"" for mode in "wax"]
_SENDING = re.compile(r"upload(_|$)")
_OTHER_FILES = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".txt", ".csv", ".tsv", ".md", ".cfg", ".ini", ".py")
"""No checkpoint is called so."""


def refuse_beside(source: Source, code: str) -> None:
    """Unwritable where ``code`` calls a helper that works later, and the source, or another file of the run, asks for
    its work at once."""
    helper = code.partition("(")[0]
    if helper not in _NAMES:
        return
    _refuse(source, helper, "line ")
    for other in source.others:
        _refuse(other, helper, f"{other.name}:")


def _refuse(source: Source, helper: str, before_line: str) -> None:
    import libcst as cst

    known = full_names(source)
    for call in source.of_type(cst.Call):
        name, full = _called(call), full_name(call, known)
        ends = {name.rpartition(".")[2], full.rpartition(".")[2]}  # it may be imported under another name
        sends = any(_SENDING.match(end) for end in ends) or (
            "put" in ends and len(call.args) > 1
        )  # not queue.put(item)
        if full in _NAMES[helper] or ends & _METHODS[helper] or sends or _reads(source, call, full):
            place = f"{before_line}{source.place(call)[0]}"
            raise Unwritable(f"{name} ({place}) may look for the file while it is being written")


def _called(call: cst.Call) -> str:
    import libcst as cst

    name = dotted(call.func)
    if name is None and isinstance(call.func, cst.Attribute):  # Path(name).exists()
        return call.func.attr.value
    return name or ""


def _reads(source: Source, call: cst.Call, full: str) -> bool:
    """``open(path)`` and ``path.open()``, unless the mode says that it is written, or the name that it is text."""
    import libcst as cst

    method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "open"
    plain = full in ("open", "io.open", "gzip.open")
    if not (plain or method):
        return False
    values = [a for a in call.args if a.keyword is None]
    named = [a for a in call.args if a.keyword is not None and a.keyword.value == "mode"]
    mode = named[0] if named else values[plain] if len(values) > plain else None
    text = source.code(mode.value) if mode is not None else "'r'"
    if method and not plain and not _MODE.fullmatch(text):  # Image.open(name), archive.open(name)
        return False
    path = values[0] if plain and values else None
    other = path is not None and source.code(path.value).rstrip("'\")").endswith(_OTHER_FILES)
    return not other and text[:2] not in _WRITING

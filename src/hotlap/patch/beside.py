"""Calls in a source that may count on what a replaced call has done when it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotlap.patch.readers import full_names
from hotlap.patch.source import Source, Unwritable, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["refuse_beside"]

_NAMES = {
    "save_later": {
        "torch.load", "os.replace", "os.rename", "os.remove", "os.link", "os.access", "os.stat", "os.walk", "os.system",
        "os.fork", "shutil.copy", "shutil.move", "shutil.make_archive", "subprocess.run", "subprocess.call",
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
    }
}  # fmt: skip
"""By the last name alone: of whatever module or object."""


def refuse_beside(source: Source, code: str) -> None:
    """Unwritable where ``code`` calls a helper that works later, and the source asks for its work at once."""
    import libcst as cst

    helper = code.partition("(")[0]
    if helper not in _NAMES:
        return
    known = full_names(source)
    for call in source.of_type(cst.Call):
        name, full = _called(call), _full(call, known)
        if full in _NAMES[helper] or name.rpartition(".")[2] in _METHODS[helper] or (
            full.rpartition(".")[2] in _METHODS[helper]  # imported under another name
        ):  # fmt: skip
            raise Unwritable(f"{name} (line {source.place(call)[0]}) may look for the file while it is being written")


def _called(call: cst.Call) -> str:
    import libcst as cst

    name = dotted(call.func)
    if name is None and isinstance(call.func, cst.Attribute):  # Path(name).exists()
        return call.func.attr.value
    return name or ""


def _full(call: cst.Call, known: dict[str, str]) -> str:
    head, dot, rest = (dotted(call.func) or "").partition(".")
    return known.get(head, head) + dot + rest

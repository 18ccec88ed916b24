"""What the script's own hooks cost: functions that modules and tensors call in the forward and the backward."""

from __future__ import annotations

from itertools import pairwise

from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.records.library_files import CALLS_HOOKS, MODULE, slashes
from hotlap.records.rows import Frame

__all__ = ["HOOK", "hook_work"]

HOOK = "hook"
"""Kind of a shape: a line that registers one. Without any, a function that a module calls is its forward, replaced."""

_PHASES = ("forward", "backward")
_NO_HOOK = {"forward", "__call__", "__getattr__", "__setattr__", "__init__"}


def hook_work(view: View) -> tuple[float, StackBook]:
    """Seconds per step inside hooks, and the samples of them."""
    registered = any(shape.kind == HOOK for shape in view.timeline.shapes)
    book = view.stacks.phase(*_PHASES).where(lambda sample: registered and _in_hook(sample))
    shares = {phase: view.stacks.phase(phase).part(_in_hook) if registered else 0.0 for phase in _PHASES}
    return sum(view.seconds(phase) * share for phase, share in shares.items()), book


def _in_hook(sample: Sampled) -> bool:
    """Not a forward that is wrapped or replaced: in there modules are called, or the user's forward."""
    frames = sample.frames
    for i, (before, frame) in enumerate(pairwise(frames), 2):
        if frame.user and frame.func not in _NO_HOOK and _calls_hooks(before, sample.phase):
            return not any(f.func == "forward" if f.user else _calls_hooks(f, "forward") for f in frames[i:])
    return False


def _calls_hooks(frame: Frame, phase: str) -> bool:
    return not frame.user and slashes(frame.file).endswith(MODULE if phase == "forward" else CALLS_HOOKS)

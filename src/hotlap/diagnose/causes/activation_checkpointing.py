"""activation-checkpointing: activations are computed twice to save memory that is free."""

from __future__ import annotations

import re

from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.library_files import CHECKPOINT, slashes
from hotlap.records.rows import Frame

CAUSE = "activation-checkpointing"

_CALL = re.compile(r"\bcheckpoint(?:_sequential)?\(")
_BACKWARD = "torch/autograd/__init__.py"
_FETCHES = "unpack_hook"
"""Of torch's checkpoint: what hands over an activation that is there by now. It takes no time, but is the first Python
code after a kernel of the backward, so that the samples of that kernel are seen in it."""


def _free_frac(view: View) -> float | None:
    """Part of the memory that was never used: of the device, or of this machine."""
    ticks = [t for t in view.timeline.tick if t.t >= view.start_ns]
    if view.on_device:
        used = max((t.device_bytes or 0 for t in ticks), default=0)
        total = min((a.memory_bytes for a in view.machine.accelerators), default=0)
        return 1.0 - used / total if used and total else None
    used = max((t.rss_bytes for t in ticks), default=0)
    total = view.machine.memory_available_bytes + used
    return 1.0 - used / total if used and total else None


def _checkpoints(sample: Sampled) -> bool:
    """Whether torch's checkpoint is at work; a model of a library calls it too."""
    return any(not frame.user and slashes(frame.file).endswith(CHECKPOINT) for frame in sample.frames)


def _again(sample: Sampled) -> bool:
    """Whether a sample below backward is of the second forward, not of the backward that a reentrant one then calls."""
    if any(frame.func == "forward" for frame in sample.user):
        return True
    last = max((i for i, frame in enumerate(sample.frames) if slashes(frame.file).endswith(CHECKPOINT)), default=None)
    if last is None or sample.frames[last].func == _FETCHES:
        return False
    return not any(slashes(frame.file).endswith(_BACKWARD) for frame in sample.frames[last:])


def find(view: View) -> Finding | None:
    """On the CPU, the forwards below backward; on a device, the forward below ``checkpoint(...)`` once more."""
    free = _free_frac(view)
    if free is None or free < view.policy.memory_free_frac:
        return None

    def calls(book: StackBook, sample: Sampled) -> bool:
        texts = book.user_texts(sample)
        own = any(_CALL.search(t) and "torch.save" not in t and "load" not in t for t in texts)
        return own or _checkpoints(sample)

    forward, backward = view.stacks.phase("forward"), view.stacks.phase("backward")
    inside = forward.where(lambda sample: calls(forward, sample))
    if not inside.total():
        return None
    again = backward.where(_again)
    seconds = view.seconds("forward") * inside.total() / forward.total()
    if again.total() and not view.on_device:
        seconds = view.seconds("backward") * again.total() / backward.total()

    def call_site(sample: Sampled) -> Frame | None:
        return next((f for f in sample.user if _CALL.search(forward.text(f))), None)

    lines = inside.lines(view.policy.max_where, call_site)
    where = [*lines, *view.option_where(CAUSE)] or inside.lines(view.policy.max_where)
    evidence = {"memory_free_frac": free, "again_s": seconds, **view.stack_evidence(again if again.total() else inside)}
    what = "Call the function without torch.utils.checkpoint" if lines else "Switch gradient checkpointing off"
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    return view.finding(
        CAUSE, seconds, f"{what}{at}: the memory is there.", where, detail="forward computed twice", phase="backward",
        evidence=evidence,
    )  # fmt: skip

"""sync: the host waits for the device where it need not."""

from __future__ import annotations

import re

from hotlap.diagnose.sites import Calls, calls, collect_calls
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "sync"

_PROGRESS = re.compile(r"set_postfix|set_description|tqdm|progress|pbar")
_PRINTED = re.compile(r"\bprint\(|logger?\.|logging\.")
_BRANCH = re.compile(r"^(?:if|elif|while|assert)\b")
_WHAT = {
    "item": ".item()", "cpu": ".cpu()", "numpy": ".numpy()", "tolist": ".tolist()", "bool": "a tensor as a condition",
    "float": "float(tensor)", "int": "int(tensor)", "synchronize": "torch.cuda.synchronize()",
}  # fmt: skip


def what_waits(op: str, text: str) -> str:
    """What a line does to a value of the device, in a few words."""
    if op == "bool" and _BRANCH.search(text):
        return "a tensor compared in a condition"
    if _PROGRESS.search(text):
        return f"{_WHAT.get(op, op)} for a progress bar"
    if _PRINTED.search(text) and op in ("item", "float", "tolist", "cpu"):
        return f"{_WHAT.get(op, op)} for a print or log"
    return _WHAT.get(op, op)


def _words(view: View) -> list[str]:
    """What the dearest places do, most time first, each said once."""
    sites = sorted(calls(view, "sync"), key=lambda site: -site.w)
    frames = view.timeline.frame
    words = (what_waits(s.op, view.stacks.text(frames[s.frame]) if s.frame in frames else "") for s in sites)
    return list(dict.fromkeys(words))[: view.policy.max_where]


def _advice(found: Calls, words: list[str]) -> str:
    at = f" at {found.where[0].file}:{found.where[0].line}" if found.where else ""
    many = f"({found.per_step:.3g} syncs per step)"
    if words and "condition" in words[0]:
        return f"Decide on the device (torch.where), or look only every so many steps{at} {many}."
    if words and "synchronize" in words[0]:
        return f"Take torch.cuda.synchronize() out of the loop{at} {many}."
    return f"Keep the value on the device and read it every so many steps{at} {many}."


def find(view: View) -> Finding | None:
    """Seconds of sync calls by line, on a device only: on the CPU there is nothing to wait for (a note says so).

    At most the time in which the device is idle can be won. While the host waits the device works, so that it is idle
    for no longer than the host does something else; where its busy fraction is known, for what that leaves.
    """
    if not view.on_device:
        return None
    sites = calls(view, "sync")
    found = collect_calls(view, sites)
    seconds = max(found.seconds, view.seconds("sync"))
    busy = [t.device_busy_frac for t in view.timeline.tick if t.device_busy_frac is not None and t.t >= view.start_ns]
    idle = 1.0 - sum(busy) / len(busy) if busy else None
    rest = max(0.0, view.times.step_s - seconds)
    won = min(seconds, rest if idle is None else min(rest, idle * view.times.step_s))
    words = _words(view)
    evidence = {
        "sync_s": seconds,
        "calls_per_step": found.per_step,
        "device_idle_frac": idle,
        "ops": sorted({s.op for s in sites}),
        "what": words,
    }
    detail = f"{found.per_step:.3g} per step" + (f": {words[0]}" if words else "")
    return view.finding(CAUSE, won, _advice(found, words), found.where, detail=detail, phase="sync", evidence=evidence)

"""TraceML's verdict on the scripts of bench/faults, for comparison.

TraceML wants the training step marked in the source. ``marked`` does that as its documentation says (``init`` once,
``trace_step`` around the step), for plain loops; Lightning and the Hugging Face Trainer have their own way in and are
not judged. Its verdict names a part of the step, never a cause or a line, so only that part can be right or wrong.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Any

from fault_runs import environment
from fault_table import Fault

__all__ = ["TraceML", "marked"]

HEAD = "import traceml_ai as traceml\ntraceml.init(mode='auto')\n"
NO_VERDICT = "INSUFFICIENT_STEP_TIME_DATA"
"""It judges only steps all of whose phases it has timed: none of a script that feeds itself without a DataLoader."""
INPUT = {
    "augment", "collate", "decode", "linear-search", "loader-rebuilt", "parsed-per-sample", "reopened-per-sample",
    "needless-workers", "slow-iterator", "workers-respawned",
}  # fmt: skip
COMPUTE = {
    "attention-by-hand", "autograd-debug", "frozen-subnetwork", "memory-format", "optimizer-loop", "precision",
    "python-loop", "thread-contention",
}  # fmt: skip


def _call(node: ast.stmt) -> ast.Attribute | None:
    """``x.y`` of a statement ``x.y(...)``."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func
    return None


def _step_end(body: list[ast.stmt]) -> int | None:
    """Index of the last optimizer step of a loop body that also calls backward."""
    calls = [(k, call) for k, node in enumerate(body) if (call := _call(node)) is not None]
    if not any(call.attr == "backward" for _, call in calls):
        return None
    steps = [k for k, call in calls if call.attr == "step" and "opt" in ast.unparse(call.value)]
    return steps[-1] if steps else None


def marked(source: str) -> str | None:
    """The script with its step marked; None when no plain step is found in it."""
    tree = ast.parse(source)
    models = [
        ast.unparse(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"
        if "opt" in source.splitlines()[node.lineno - 1].split("=")[0]
    ]
    if not models:
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        end = _step_end(body) if isinstance(body, list) else None
        if isinstance(body, list) and end is not None:
            step = ast.parse(f"with traceml.trace_step({models[0]}):\n    pass").body[0]
            assert isinstance(step, ast.With)
            step.body = body[: end + 1]
            body[: end + 1] = [step]
            return HEAD + ast.unparse(tree)
    return None


class TraceML:
    """An environment with TraceML over the packages of this one."""

    def __init__(self, home: Path) -> None:
        self.home = home / "traceml-env"
        venv.create(self.home, with_pip=True)
        subprocess.run([self.home / "bin/pip", "install", "-q", "traceml-ai"], check=True)
        site = next((self.home / "lib").glob("python*/site-packages"))
        (site / "here.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    def judge(self, fault: Fault, cwd: Path) -> dict[str, Any] | None:
        """Its verdict on one script, and whether that is the right part of the step; None when it cannot be asked.

        ``right`` is None where it gives no verdict.
        """
        source = marked(fault.script.read_text())
        if source is None:
            return None
        script = cwd / fault.script.name
        script.write_text(source)
        logs = cwd / "traceml-logs"
        command = [self.home / "bin/traceml", "run", "--mode", "summary", "--logs-dir", logs, script]
        done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
        script.unlink()
        found = sorted(logs.rglob("final_summary.json"))
        if not found:
            raise RuntimeError(f"TraceML left no summary on {fault.name}: {done.stderr[-2000:]}")
        kind = json.loads(found[-1].read_text())["primary_diagnosis"]["kind"]
        return {"kind": kind, "right": None if kind == NO_VERDICT else kind == wanted(fault)}


def wanted(fault: Fault) -> str:
    """The verdict of TraceML's that fits the cause."""
    if fault.healthy:
        return "NO_CLEAR_PERFORMANCE_BOTTLENECK"
    if fault.causes[0] in INPUT:
        return "INPUT_BOUND"
    return "COMPUTE_BOUND" if fault.causes[0] in COMPUTE else "RESIDUAL_HEAVY"

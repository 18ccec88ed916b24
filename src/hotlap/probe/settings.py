"""How the script set things up: loaders, model, optimizer, threads, debugging, framework; again when it changes."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from hotlap.probe import switch_lines
from hotlap.probe.context import Context
from hotlap.probe.forward import Forwards
from hotlap.probe.loader import LoaderInfo
from hotlap.probe.made_at import MadeAt
from hotlap.probe.model_facts import model_facts
from hotlap.probe.own_frames import strip
from hotlap.probe.switch_lines import SwitchLines
from hotlap.records.rows import Setting

__all__ = ["Settings", "install"]


class Settings:
    """What was said last, so that only changes are said again."""

    def __init__(self, ctx: Context, forwards: Forwards, lines: SwitchLines) -> None:
        self.ctx = ctx
        self.lines = lines
        self.made_at = MadeAt(ctx, ctx.torch.optim.Optimizer)
        self.rec = ctx.rec
        self.forwards = forwards
        self._last: dict[str, Any] = {}
        self._autocast_at: int | None = None
        self._calls_seen = 0
        self._step_seen = 0

    def say(self, name: str, value: dict[str, Any], frame: int | None = None, key: str = "") -> None:
        """Emit the row unless it was the last one of this name (and ``key``)."""
        if self._last.get(name + key) == value:
            return
        self._last[name + key] = value
        self.rec.emit(Setting(name, value, frame))

    def loader(self, info: LoaderInfo, training: bool) -> None:
        """It is known what a loader is for."""
        if info.facts is not None:
            more = {"sample_bytes": info.sample_bytes, "training": training}
            self.say("loader", {**info.facts, **more}, info.frame, str(info.number))

    def optimizer(self, optimizer: Any) -> None:
        """An optimizer's first update."""
        tensors = [p for group in optimizer.param_groups for p in group["params"]]
        with self.ctx.torch._C.DisableTorchFunction():
            parameters = sum(p.numel() for p in tensors)
        first = optimizer.param_groups[0] if optimizer.param_groups else {}
        value = {
            "class": type(optimizer).__name__,
            "tensors": len(tensors),
            "foreach": first.get("foreach"),
            "fused": first.get("fused"),
            "capturable": first.get("capturable"),
            "parameters": parameters,
        }
        self.say("optimizer", value, self.made_at.of(optimizer), str(id(optimizer)))
        self.framework()
        self.threads()

    def framework(self) -> None:
        """Whose loop it is, by who stands on the stack of the first update."""
        name = "plain"
        frame: Any = sys._getframe(1)
        while frame is not None:
            root = str(frame.f_globals.get("__name__", ""))
            if root.startswith(("lightning.pytorch", "pytorch_lightning")):
                name = "lightning"
            elif root.startswith("transformers.trainer"):
                name = "transformers"
            elif root.startswith("accelerate.") and name == "plain":
                name = "accelerate"
            frame = frame.f_back
        self.say("framework", {"name": name})

    def threads(self) -> None:
        """Threads and cores."""
        torch = self.ctx.torch
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.say(
            "threads",
            {
                "torch": torch.get_num_threads(),
                "interop": torch.get_num_interop_threads(),
                "cores": cores,
                "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY"),
            },
            self.lines.of("threads"),
        )

    def autocast(self, dtype: str) -> None:
        """A region of autocast has begun in training."""
        if self.forwards.autocast != dtype:
            self.forwards.autocast = dtype
            self._autocast_at = self.ctx.rec.frames.user_number() or None

    def after_step(self, index: int) -> None:
        """Look again now and then."""
        self.threads()
        self.debug()
        for ref in list(self.ctx.points.roots.values()):
            root = ref()
            if root is not None:
                self.model(root, index)

    def model(self, root: Any, index: int) -> None:
        """One root module."""
        with self.ctx.torch._C.DisableTorchFunction():  # a mode or subclass of the script's sees none of it
            value = model_facts(self.ctx.torch, root)
        steps = max(1, index - self._step_seen - self.rec.briefly)
        value["autocast"] = self.forwards.autocast
        value["training_forward_calls"] = round((self.forwards.training_calls - self._calls_seen) / steps, 2)
        last = self._last.get("model" + str(id(root)))
        if last is not None:
            value["training_forward_calls"] = last["training_forward_calls"]
        self.say("model", value, self._autocast_at, str(id(root)))

    def debug(self) -> None:
        """Switches that cost time."""
        torch = self.ctx.torch
        anomaly = self.rec.anomalous > 0 or torch.is_anomaly_enabled()  # ``with detect_anomaly():`` is over by now
        self.rec.anomalous = 0
        frac = self._profiled_frac()
        value = {
            "anomaly": anomaly,
            "profiler": frac > 0.0,
            "profiler_frac": round(frac, 3),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
        }
        switch = "anomaly" if anomaly else "torch profiler" if value["profiler"] else ""
        self.say("debug", value, self.lines.of(switch))

    def _profiled_frac(self) -> float:
        """Part of the backward passes since the last look that torch's profiler recorded: a schedule of its own may
        let it rest at every look. Without any such pass, whether it records now."""
        rec = self.rec
        seen, recorded, rec.backwards, rec.profiled = rec.backwards, rec.profiled, 0, 0
        return recorded / seen if seen else float(self.ctx.torch._C._autograd._profiler_enabled())


def install(ctx: Context, forwards: Forwards) -> Settings:
    """Note the lines that switch and that make optimizers, and replace ``autocast.__enter__``."""
    found = Settings(ctx, forwards, switch_lines.install(ctx))
    autocast = ctx.torch.amp.autocast_mode.autocast
    enter = autocast.__enter__
    is_compiling = ctx.torch.compiler.is_compiling

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        try:
            entered = enter(self)
        except BaseException as err:
            strip(err)
            raise
        if not is_compiling() and ctx.torch.is_grad_enabled() and ctx.torch.is_autocast_enabled(self.device):
            found.autocast("bf16" if self.fast_dtype is ctx.torch.bfloat16 else "fp16")
        return entered

    ctx.undo.replace(autocast, "__enter__", __enter__)
    ctx.rec.on_look.append(found.after_step)
    return found

"""The sentences and names that terminal and HTML share."""

from __future__ import annotations

import json
from typing import Any

from hotlap.records.cells import line_words
from hotlap.records.findings import Finding, Where
from hotlap.records.proof import Quality
from hotlap.records.trials import NO_TIME, LeverResult
from hotlap.report import units
from hotlap.report.view import Report

__all__ = [
    "PHASE_NAMES",
    "PRESERVES_WORDS",
    "certainty",
    "clean",
    "ended",
    "machine_line",
    "missing",
    "outcome",
    "phase_name",
    "place",
    "proof_lines",
    "quantity",
    "reason",
    "setting_text",
    "shorten_path",
    "throughput_text",
    "verdict",
]

PHASE_NAMES = {
    "data_wait": "data wait",
    "h2d": "host-to-device copy",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "zero_grad": "zero-grad",
    "validation": "validation",
    "checkpoint": "checkpoint",
    "logging": "logging",
    "sync": "sync",
    "gc": "garbage collection",
    "residual": "residual",
}

PRESERVES_WORDS = {
    "bits": "same numbers, bit for bit",
    "maths": "same formula, other rounding",
    "distribution": "same law, other draws",
    "goal": "another training towards the same target",
}


def clean(text: str) -> str:
    """Control characters (an escape sequence in a file name) made visible; line ends and tabs become blanks."""
    return "".join(" " if c in "\n\r\t" else c if c.isprintable() or c == " " else "\ufffd" for c in text)


def outcome(lever: LeverResult) -> str:
    """What became of a lever, in two words at most."""
    if lever.kept:
        return "kept"
    if lever.measured is not None:
        return "put back"
    reason = lever.reason.lower().replace("-", " ")
    return next((word for word in ("failed", "no effect", "refused") if reason.startswith(word)), "not kept")


def reason(lever: LeverResult) -> str:
    """Why, without the word that :func:`outcome` says already."""
    head, colon, rest = lever.reason.partition(":")
    same = colon and head.lower().replace("-", " ").strip() == outcome(lever)
    return rest.strip() if same else lever.reason


def phase_name(phase: str) -> str:
    """Phase id to words; an unknown one speaks for itself."""
    return PHASE_NAMES.get(phase, phase.replace("_", " "))


def shorten_path(path: str, width: int) -> str:
    """Cut from the left, at a folder where possible: ``…/pkg/train.py``."""
    if len(path) <= width or width < 2:
        return path
    tail = path[-(width - 1) :]
    slash = tail.find("/")
    return "…" + (tail[slash:] if 0 < slash < len(tail) - 1 and len(tail) - slash >= width // 3 else tail)


def place(where: Where, width: int = 10_000) -> str:
    """``train.py:48``, in a notebook ``cell In[3], line 12``, cut from the left to ``width``."""
    line = line_words(where.file, where.line)
    return shorten_path(where.file, max(8, width - len(line))) + line


def setting_text(setting: dict[str, Any]) -> str:
    """``{"workers": 2, "persistent": True}`` -> ``workers 2, persistent``; a knob's as it is written."""
    if set(setting) == {"option", "value"}:
        return f"{setting['option']}{'' if str(setting['option']).endswith('=') else ' '}{setting['value']}"
    if set(setting) == {"file", "key", "value"}:
        return f"{setting['key']} {json.dumps(setting['value'])} in {setting['file']}"
    parts = []
    for key, value in setting.items():
        name = key.replace("_", " ")
        if key.endswith("_bytes") and isinstance(value, int | float):
            parts.append(f"{name.removesuffix(' bytes')} {units.bytes_(value)}")
        elif value is True:
            parts.append(name)
        elif value is False:
            parts.append(f"no {name}")
        else:
            parts.append(f"{name} {value if isinstance(value, str) else json.dumps(value, default=str)}")
    return ", ".join(parts)


def quantity(key: str, value: Any) -> tuple[str, str]:
    """A number of the evidence, its unit taken from its name: ``("load_s_per_step", 0.18)`` -> ``load per step``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return key.replace("_", " "), str(value)
    for unit, write in (("s", units.seconds), ("bytes", units.bytes_), ("frac", units.share)):
        name, found, rest = f"{key}_".partition(f"_{unit}_")
        if found and not name.endswith("_per"):
            return f"{name}_{rest}".strip("_").replace("_", " "), write(value)
    return key.replace("_", " "), units.count(value) if isinstance(value, int) else units.plain(value)


_TAKEN_AWAY = {"data": "loading", "checkpoint": "checkpoints"}
"""What the trial was without, in words; the others are called as they are."""


def certainty(finding: Finding) -> str:
    """``confirmed: 3.40x without loading``, ``confirmed`` or ``observed``."""
    if not finding.confirmed:
        return "observed"
    if finding.without is None:
        return "confirmed"
    what = _TAKEN_AWAY.get(finding.ablation or "", finding.ablation or "it")
    return f"confirmed: {units.ratio(finding.without)} without {what}"


def throughput_text(samples_per_s: float | None, steps_per_s: float | None) -> str:
    """``212 samples/s``, or steps where samples are unknown."""
    if samples_per_s is not None:
        return f"{units.per_s(samples_per_s)} samples/s"
    return f"{units.per_s(steps_per_s)} steps/s"


def machine_line(report: Report) -> str:
    """``AMD EPYC · 2 cores · torch 2.13.0``."""
    machine = report.machine
    if machine is None:
        return "machine not recorded"
    cores = f"{machine.cores} core" + ("s" if machine.cores != 1 else "")
    device = [a.name for a in machine.accelerators]
    many = f"{len(device)} x {device[0]}" if len(set(device)) == 1 and len(device) > 1 else ", ".join(device)
    torch = f"torch {machine.torch}" if machine.torch else "no torch"
    cpu = machine.cpu.replace("(R)", "").replace("(TM)", "")
    return " · ".join(part for part in (many or " ".join(cpu.split()), cores, torch) if part)


def verdict(report: Report) -> str:
    """One sentence: the report's own, else made from the documents."""
    if report.verdict:
        return report.verdict
    if report.status not in ("", "finished"):
        return f"The run {ended(report)}; this is what it had found by then."
    if report.proof is not None and report.speedup is not None and report.kept:
        text = units.ratio_interval(report.speedup.ratio, report.speedup.low, report.speedup.high)
        if report.proof.claimed:
            return f"{text} faster, quality {report.proof.quality.verdict}."
        return "No speedup was measured." if text == units.NONE else f"No speedup is claimed: measured {text}."
    if report.findings is None:
        return "Nothing was measured."
    if report.levers and not report.kept:
        tried = len(report.levers)
        return f"{tried} lever{'s were' if tried > 1 else ' was'} tried, none was kept."
    found = report.findings.findings
    top = next((f for f in found if f.confirmed or "without_interval" not in f.evidence), None)
    if top is None and found:
        return "Nothing is certain to be gained: what was found gained nothing certain when it was taken away."
    if top is None or top.cause == "nothing-to-gain":
        return "Nothing to gain: the training runs at its roof." if top else "No cause was found."
    if top.share <= 0:
        return f"No time is lost, but look at {top.cause}."
    told = f" {_why_untried(report)}" if report.kind == "speedup" and not report.levers else ""
    return f"{units.share(top.share)} of the step goes to {top.cause}.{told}"


def _why_untried(report: Report) -> str:
    late = any(reason.startswith(NO_TIME) for _, reason in report.refused)
    no_time = "No time was left to try a lever: a larger --budget does."
    return no_time if late else "No lever fits what was found: nothing was tried."


def ended(report: Report) -> str:
    """How a run ended that was not finished, after "the run"."""
    if report.status == "running":
        return "is still running, or was killed"
    return report.status if report.status == "failed" else f"was {report.status}"


def missing(report: Report) -> list[str]:
    """What a run that was cut off did not come to."""
    parts: list[tuple[str, object]] = [("the machine's facts", report.machine), ("findings", report.findings)]
    if report.findings is not None:
        parts.append(("the roof", report.findings.roof))
    if report.is_speedup:
        parts += [
            ("lever trials", report.levers or report.proof or None),
            ("the proof", report.proof),
            ("a plan", report.plan),
        ]
    return [name for name, value in parts if value is None]


def _quality(quality: Quality) -> str:
    """The verdict on quality with the numbers that it rests on."""
    if quality.delta_frac is None or quality.kind != "non-inferior":
        return quality.summary or f"quality {quality.verdict}"
    most = f", at most {units.signed_share(quality.upper_frac)}" if quality.upper_frac is not None else ""
    margin = f" (margin {units.share(quality.margin_frac)})" if quality.margin_frac is not None else ""
    over = f"over {quality.seeds} seed{'' if quality.seeds == 1 else 's'} of {units.count(quality.steps)} steps"
    told = f"quality {quality.verdict}: loss {units.signed_share(quality.delta_frac)} {over}{most}{margin}"
    return told if quality.verdict == "proved" else f"{told}. {quality.summary}"


def proof_lines(report: Report) -> list[str]:
    """Speedup, quality and time-to-loss, one short text each."""
    proof = report.proof
    if proof is None or not report.kept:
        return []
    lines = []
    if proof.speedup is not None:
        text = units.ratio_interval(proof.speedup.ratio, proof.speedup.low, proof.speedup.high)
        value, _, bounds = text.partition(" ")
        unclaimed = "no speedup measured" if text == units.NONE else f"no speedup claimed: {text}"
        launches = proof.speedup.launches
        over = f" in {launches} launches" if launches > 1 else " in one launch"
        lines.append((f"{value} faster {bounds}".strip() if proof.claimed else unclaimed) + over)
    quality = proof.quality
    lines.append(_quality(quality))
    if quality.first_difference is not None:
        lines.append(f"losses differ from step {units.count(quality.first_difference)} on")
    if quality.time_to_loss:
        lines.append(f"same loss reached in 1/{units.factor(quality.time_to_loss)} of the time")
    return lines

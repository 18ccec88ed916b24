"""Run folders as Hotlap leaves them, made without a training: for tests and benchmarks of what reads them."""

from __future__ import annotations

from pathlib import Path

from hotlap.probe.writer import row_text
from hotlap.records.findings import Finding, Findings, Roof, Script, StepModel, Throughput, Where
from hotlap.records.proof import Proof, Quality
from hotlap.records.rows import PHASES, SCHEMA, Header
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Interval
from hotlap.testing.timelines import cpu_machine

__all__ = ["made_findings", "made_run", "made_timeline", "timeline_text"]

STEP_NS = 60_000_000
FULL = 50_000
EACH = 25_000
"""As the recorder has it: so many rows of one step, then twice the steps per row after every so many rows."""


def made_findings(cause: str = "decode", step_s: float = 0.1, file: str = "train.py", detail: str = "") -> Findings:
    """A diagnosis with one finding."""
    shares: dict[str, float | None] = dict.fromkeys(PHASES)
    shares |= {"data_wait": 0.6, "forward": 0.15, "backward": 0.2, "optimizer": 0.03, "residual": 0.02}
    where = [Where(file, 48, "__getitem__", "image = load(path)", 0.55)]
    over_time = [
        {
            "step": n * 10,
            "t_s": n * 1.0,
            "step_s": step_s,
            "phases": {"data_wait": 0.6 * step_s, "forward": 0.4 * step_s},
        }
        for n in range(60)
    ]
    return Findings(
        script=Script("train.py", ["train.py"], "plain", "cpu", None),
        throughput=Throughput(32 / step_s, 1 / step_s, step_s, step_s, 32.0, 600, 20),
        phases=shares,
        step_model=StepModel(step_s, 0.6 * step_s, 0.38 * step_s, 0.02 * step_s, 0.0, 0.0, 0.0, 0.0),
        findings=[Finding(cause, 0.6, 0.6 * step_s, True, where, "Cache what was decoded.", detail, "data_wait")],
        roof=Roof(96 / step_s, step_s / 3, 1 / 3, "resident batch"),
        over_time=over_time,
    )


def made_run(root: Path, name: str, run: RunRecord, findings: Findings | None = None) -> RunFolder:
    """A run with its record and its machine; one of ``hotlap speedup`` that has findings has a proof too."""
    folder = RunFolder(root / name)
    folder.path.mkdir(parents=True)
    folder.write("run.json", run)
    folder.write("machine.json", cpu_machine())
    if findings is not None:
        folder.write("findings.json", findings)
        if run.kind == "speedup":
            quality = Quality("proved", "bits", "Losses are equal bit for bit.")
            folder.write("proof.json", Proof(Interval(2.5, 2.4, 2.6), quality, True, 800.0, 0.83))
    return folder


def timeline_text(steps: int, argv: list[str] | None = None, rank: int = 0) -> str:
    """A timeline of so many steps, its rows growing as the recorder's do; a slower part after two thirds."""
    header = Header(SCHEMA, "0", "train", 100 + rank, 1, rank, 1, argv or ["train.py"], "/home/me", "3.11", "2.13",
                    "cpu", 0, 0.0)  # fmt: skip
    lines = [row_text(header)]
    at, step, each, rows, doubling = 0, 0, 1, 0, FULL
    while step < steps:
        n = min(each, steps - step)
        wall = (STEP_NS + step * 7919 % 1001) * n * (2 if step > steps * 2 // 3 else 1)
        part = wall // 4
        phases = f"{part},null,{part},{part},{wall - 3 * part},0,0,0,0,0,0,0"
        count = f'"s":{32 * n},"m":{n},"mx":{wall // n}'
        lines.append(f'{{"k":"step","i":{step},"n":{n},"t":{at},"w":{wall},"p":[{phases}],{count}}}\n')
        if rows % 500 == 0:
            lines.append(f'{{"k":"tick","t":{at},"rss_bytes":{2**31},"cpu":{at}}}\n')
        at, step, rows = at + wall, step + n, rows + 1
        if rows >= doubling:
            each, doubling = each * 2, doubling + EACH
    return "".join(lines)


def made_timeline(folder: RunFolder, steps: int, name: str = "100.jsonl", ended: bool = False) -> Path:
    """That timeline where a watched run has it."""
    path = folder.timeline_dir("run") / name
    end = '{"k":"end","t":1,"reason":"exit"}\n' if ended else ""
    path.write_text(timeline_text(steps) + end, encoding="utf-8")
    return path

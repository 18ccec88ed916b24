"""Realistic reports for the tests, and for looking at."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

from hotlap.records.findings import (
    Drift,
    Finding,
    Findings,
    LoaderFacts,
    Roof,
    Script,
    StepModel,
    Throughput,
    Where,
)
from hotlap.records.machine import Machine, Peak
from hotlap.records.plan import Move, Plan
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Interval, LeverResult, Trial, Window
from hotlap.report.view import Report

MACHINE = Machine(
    system="Linux 6.1",
    cpu="Intel Xeon Platinum 8481C",
    cores=2,
    memory_bytes=16_800_000_000,
    memory_available_bytes=12_100_000_000,
    cpu_flags=["avx2", "avx512f", "avx512_bf16", "amx_bf16"],
    python="3.11.2",
    torch="2.13.0",
    peaks=[Peak("bfloat16", 3.4e12, "measured matmul 4096")],
    sandbox="root",
    compiler="g++ 12.2",
    shm_bytes=8_400_000_000,
    shm_free_bytes=8_300_000_000,
    host="5b1e6c0a9f37",
)

PHASES: dict[str, float | None] = {
    "data_wait": 0.71,
    "h2d": None,
    "forward": 0.03,
    "backward": 0.045,
    "optimizer": 0.012,
    "zero_grad": 0.003,
    "validation": 0.12,
    "checkpoint": 0.05,
    "logging": 0.012,
    "sync": 0.004,
    "gc": 0.001,
    "residual": 0.013,
}


def findings_list() -> list[Finding]:
    """Five causes, two of them confirmed."""
    stack = [
        "train.py:212 main",
        "train.py:188 train_epoch",
        "torch/utils/data/dataloader.py:733 __next__",
        "train.py:48 SpeechSet.__getitem__",
        "soundfile.py:285 read",
    ]
    return [
        Finding(
            "decode",
            0.62,
            0.187,
            True,
            [
                Where("train.py", 48, "SpeechSet.__getitem__", "wave, rate = soundfile.read(self.files[index])", 0.81),
                Where("train.py", 57, "SpeechSet.__getitem__", "wave = self.augment(wave)", 0.19),
            ],
            "Decode in more than one process, or keep decoded samples: cache-decode keeps the numbers as they are.",
            "decode + augment, one process",
            "data_wait",
            {
                "stacks": [
                    {"frames": stack, "share": 0.78},
                    {"frames": [*stack[:3], "train.py:57 augment"], "share": 0.14},
                ],
                "load_ms_per_sample": 4.41,
                "workers": 0,
            },
            3.4,
            "data",
        ),
        Finding(
            "validation-cadence",
            0.12,
            0.036,
            True,
            [Where("train.py", 131, "evaluate", "scores = model(batch)")],
            "Validate once per epoch instead of every 50 steps.",
            "every 50 steps",
            "validation",
            {},
            1.13,
            "validation",
        ),
        Finding(
            "checkpoint-blocking",
            0.05,
            0.015,
            False,
            [Where("train.py", 140, "save", "torch.save(state, folder / f'{step}.pt')")],
            "Write checkpoints from a copy, in the background.",
            "torch.save every 100 steps",
            "checkpoint",
        ),
        Finding(
            "precision", 0.035, 0.0105, False, [], "Use bf16 autocast: this CPU has AMX.", "fp32 on AMX", "forward"
        ),
        Finding(
            "sync",
            0.004,
            0.0012,
            False,
            [Where("train.py", 119, "train_epoch", "total += loss.item()")],
            "Read the loss every n steps.",
            "loss.item() each step",
            "sync",
        ),
    ]


def over_time(points: int = 120, steps: int = 600, drift: bool = True) -> list[dict[str, Any]]:
    """Step time by phase over the run, with a jump of the data wait at two thirds."""
    rng = random.Random(0)
    out = []
    for n in range(points):
        grown = 1.9 if drift and n > points * 2 / 3 else 1.0
        phases = {
            "data_wait": 0.213 * grown * (1 + 0.08 * rng.random()),
            "forward": 0.009,
            "backward": 0.0135,
            "optimizer": 0.0036,
            "zero_grad": 0.0009,
            "validation": 0.29 if n % 10 == 9 else 0.0,
            "checkpoint": 0.15 if n % 20 == 19 else 0.0,
            "logging": 0.0036,
            "sync": 0.0012,
            "gc": 0.0003,
            "residual": 0.004 * (1 + rng.random()),
        }
        total = sum(phases.values())
        out.append({"step": n * steps // points, "t_s": n * 1.5, "step_s": total, "phases": phases})
    return out


def findings(**changes: Any) -> Findings:
    """A whole diagnosis."""
    loader = LoaderFacts(
        0, 64, False, None, False, "SpeechSet", 4200, False, 66, 256_000, Where("train.py", 160, "main")
    )
    base = Findings(
        script=Script(
            "train.py",
            ["train.py", "--data", "clips"],
            "plain",
            "cpu",
            loader,
            {"class": "SpeakerNet", "parameters": 1_430_000, "dtype": "float32"},
            [{"class": "AdamW"}],
        ),
        throughput=Throughput(212.3, 3.317, 0.3015, 0.248, 64.0, 600, 12),
        phases=PHASES,
        step_model=StepModel(
            0.3015, 0.213, 0.028, 0.006, 0.052, 0.036, 0.015, 0.001, 0.28, 0.22, 0.004, workers=0, cores=2
        ),
        findings=findings_list(),
        roof=Roof(
            1904.0, 0.0336, 0.1115, "resident batch, autocast bf16, no validation, no checkpoint", 0.41, "peaks.toml"
        ),
        drift=Drift(400, 0.25, 0.44, "data_wait", False),
        notes=["Two windows were dropped: another process took a core."],
        over_time=over_time(),
    )
    return dataclasses.replace(base, **changes)


def levers() -> list[LeverResult]:
    """Three kept, three not."""
    return [
        LeverResult("cache-decode", {"limit_gib": 4}, "bits", 2.8, Interval(3.04, 2.97, 3.11), True, "", 644.0, 3.04),
        LeverResult(
            "loader-workers",
            {"workers": 2, "persistent": True, "prefetch": 4},
            "distribution",
            1.6,
            Interval(1.43, 1.38, 1.47),
            True,
            "",
            918.0,
            4.33,
        ),
        LeverResult(
            "compile-model",
            {"mode": "default"},
            "maths",
            1.15,
            Interval(1.02, 0.98, 1.05),
            False,
            "the interval includes 1.00x",
        ),
        LeverResult(
            "autocast", {"dtype": "bfloat16"}, "maths", 1.7, Interval(1.61, 1.57, 1.66), True, "", 1480.0, 6.98
        ),
        LeverResult("channels-last", {}, "maths", 1.1, None, False, "no effect: nothing to change was found"),
        LeverResult(
            "optimizer-fused",
            {"fused": True},
            "maths",
            1.01,
            None,
            False,
            "failed: the trial ran out of memory after 14 steps",
        ),
    ]


def losses(seeds: int = 3, steps: int = 200) -> dict[str, list[list[float]]]:
    """Loss curves that look like training."""
    rng = random.Random(1)

    def curve(scale: float) -> list[float]:
        return [scale * (0.9 + 4.6 * math.exp(-n / 55)) + rng.gauss(0, 0.09) for n in range(steps)]

    return {"baseline": [curve(1.0) for _ in range(seeds)], "candidate": [curve(1.004) for _ in range(seeds)]}


def proof(**changes: Any) -> Proof:
    """A proved speedup."""
    quality = Quality(
        "proved",
        "non-inferior",
        "loss non-inferior over 3 seeds (Δ 0.4 %, margin 2 %)",
        0.004,
        0.011,
        0.02,
        3,
        200,
        None,
        6.8,
        losses(),
    )
    return dataclasses.replace(Proof(Interval(6.93, 6.71, 7.18), quality, True, 1471.0, 0.773), **changes)


def windows() -> list[Window]:
    """Alternating windows of a proof trial, one dropped."""
    rng = random.Random(2)
    out = []
    for n in range(8):
        arm = "candidate" if n % 2 else "baseline"
        steady = (0.036 if n % 2 else 0.248) * (1 + rng.gauss(0, 0.02))
        out.append(Window(arm, n * 5 * 10**9, 60 if n % 2 else 20, 3840, steady, "neighbour load" if n == 5 else None))
    return out


def plan() -> Plan:
    """The three kept moves."""
    return Plan(
        [
            Move(
                lever.id, lever.setting, lever.preserves, lever.measured.ratio, lever.measured.low, lever.measured.high
            )  # type: ignore[arg-type, union-attr]
            for lever in levers()
            if lever.kept
        ],
        "train.py",
        "Intel Xeon Platinum 8481C, 2 cores",
        "2.13.0",
        6.93,
        6.71,
        7.18,
        "2026-11-21T02:00:00",
    )


def speedup(**changes: Any) -> Report:
    """A full speedup report."""
    base = Report(
        machine=MACHINE,
        findings=findings(),
        levers=levers(),
        proof=proof(),
        plan=plan(),
        plan_path="fast.yaml",
        command=["python", "train.py", "--data", "clips"],
        run_path=".hotlap/20261121-020000-train",
        wall_s=187.4,
        refused=[("background-fetch", "the loader has workers already")],
        trials=[Trial("proof", {}, "measured", windows=windows())],
    )
    return dataclasses.replace(base, **changes)


def diagnose(**changes: Any) -> Report:
    """A diagnosis alone."""
    base = Report(
        machine=MACHINE,
        findings=findings(),
        command=["python", "train.py"],
        run_path=".hotlap/x",
        wall_s=31.0,
        kind="diagnose",
    )
    return dataclasses.replace(base, **changes)


def nothing_to_gain() -> Report:
    """A healthy script."""
    healthy = findings(
        findings=[Finding("nothing-to-gain", 0.02, 0.0007, True, [], "Leave it as it is.", "at 98 % of the roof")],
        roof=Roof(1904.0, 0.0336, 0.98, "resident batch"),
        drift=None,
        throughput=Throughput(1866.0, 29.2, 0.0343, 0.0341, 64.0, 900, 20),
        phases={"data_wait": 0.01, "forward": 0.36, "backward": 0.55, "optimizer": 0.06, "residual": 0.02},
        over_time=over_time(drift=False),
    )
    put_back = [
        LeverResult("autocast", {}, "maths", 1.02, Interval(1.0, 0.97, 1.02), False, "the interval includes 1.00x")
    ]
    quality = Quality("not proved", "none", "no lever was kept, so there is nothing to prove")
    return speedup(
        findings=healthy, levers=put_back, proof=Proof(None, quality, False), plan=Plan([]), refused=[], trials=[]
    )


def failed_levers() -> Report:
    """Every lever failed."""
    bad = [
        dataclasses.replace(
            lever, kept=False, measured=None, reason=f"failed: {reason}", samples_per_s=None, cumulative=None
        )
        for lever, reason in zip(
            levers(), ("out of memory", "crashed with exit code 1", "hung for 60 s") * 2, strict=True
        )
    ]
    quality = Quality("not proved", "none", "no lever was kept, so there is nothing to prove")
    return speedup(levers=bad, proof=Proof(None, quality, False), plan=Plan([]), trials=[])


def cut_off() -> Report:
    """Killed after the diagnosis."""
    return Report(
        findings=findings(roof=None),
        command=["python", "train.py"],
        run_path=".hotlap/y",
        status="interrupted",
        kind="speedup",
    )


def no_samples() -> Report:
    """A loop without a DataLoader: samples are unknown."""
    unknown = findings(
        throughput=Throughput(None, 3.3, 0.3, 0.25, None, 600, 12), roof=Roof(None, 0.034, 0.11, "resident")
    )
    rungs = [dataclasses.replace(lever, samples_per_s=None) for lever in levers()]
    return speedup(findings=unknown, levers=rungs, proof=proof(samples_per_s=None))


NASTY = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def nasty() -> Report:
    """Markup and far scripts in every text."""
    text = NASTY + " [bold]学習スクリプト[/bold] 🚀 Ünïcødé \x1b[31m"
    evil = Finding(
        "decode",
        0.5,
        0.1,
        True,
        [Where(f"/{text}/train.py", 1, text, text)],
        text,
        text,
        text,
        {"stacks": [{"frames": [text], "share": 0.5}], text: text},
        2.0,
        "data",
    )
    lever = LeverResult(text, {text: text}, text, 1.5, Interval(1.5, 1.4, 1.6), True, text, 300.0, 1.5)
    quality = Quality("proved", "bits", text, raw={text: [[1.0, 2.0]]})
    script = Script(text, [text], text, text, None, {text: text})
    return speedup(
        findings=findings(
            findings=[evil],
            script=script,
            notes=[text],
            phases={text: 0.5, "forward": 0.5},
            over_time=[{"step": n, "t_s": n, "step_s": 1.0, "phases": {text: 0.5}} for n in range(3)],
            drift=Drift(1, 1.0, 2.0, text, True),
        ),
        levers=[lever, dataclasses.replace(lever, kept=False)],
        proof=proof(quality=quality),
        plan_path=text,
        command=[text],
        plan=Plan([Move("autocast", {text: text}, "maths")], text),
        notes=[text],
        verdict=text,
        run_path=text,
        refused=[(text, text)],
        machine=dataclasses.replace(MACHINE, cpu=text),
    )


def long_paths() -> Report:
    """Paths and names that fit nowhere."""
    path = "/data/" + "very-long-folder-name/" * 12 + "train.py"
    far = [
        dataclasses.replace(
            f, where=[Where(path, 123456, "Outer.Inner." * 12 + "f", "x = " + "a" * 300)], detail="d " * 90
        )
        for f in findings_list()
    ]
    script = dataclasses.replace(findings().script, name="other-long-folder-name/" * 12 + "train.py")
    return speedup(findings=findings(findings=far, script=script), plan_path=path + ".yaml", command=["python", path])


def many_findings() -> Report:
    """Fifteen causes in a run of a million steps."""
    fifteen = [dataclasses.replace(findings_list()[n % 5], share=0.5 / (n + 1)) for n in range(15)]
    points = [dict(point, step=n * 8333) for n, point in enumerate(over_time())]
    return speedup(
        findings=findings(
            findings=fifteen,
            over_time=points,
            throughput=Throughput(212.3, 3.3, 0.3, 0.25, 64.0, 1_000_000, 12),
            drift=Drift(700_000, 0.25, 0.44, "data_wait", False),
        )
    )


def absurd() -> Report:
    """Zero, None, infinite and huge numbers everywhere."""
    inf, nan = math.inf, math.nan
    zero = Finding("decode", 0.0, 0.0, False, [Where("", 0, "")], "", evidence={"n": nan})
    huge = Finding("sync", 7.5, 1e30, True, [], "", without=inf)
    rungs = [
        LeverResult("a", {}, "bits", None, Interval(1e12, 0.0, inf), True, "", 1e30, 1e12),
        LeverResult("b", {"x": None}, "maths", nan, Interval(0.0, 0.0, 0.0), False, ""),
        LeverResult("c", {}, "goal", 0.0, None, True, "", None, None),
    ]
    quality = Quality(
        "refuted", "bits", "", nan, inf, 0.0, 0, 0, 0, 0.0, {"baseline": [[], [nan, inf]], "candidate": [[0.0]]}
    )
    points = [
        {"step": 0, "t_s": 0.0, "step_s": 0.0, "phases": {}},
        {"step": 1, "t_s": 0.0, "step_s": nan, "phases": {"forward": nan, "data_wait": None}},
        {"step": 2, "t_s": 1e30, "step_s": 1e9, "phases": {"gc": 1e9}},
    ]
    return speedup(
        findings=findings(
            findings=[zero, huge],
            throughput=Throughput(0.0, 0.0, inf, nan, 0.0, 0, 0),
            phases=dict.fromkeys(PHASES),
            roof=Roof(1e18, 0.0, 0.0, ""),
            drift=Drift(0, 0.0, inf, "", False),
            over_time=points,
        ),
        levers=rungs,
        proof=Proof(Interval(nan, -inf, inf), quality, False),
        wall_s=0.0,
        plan=Plan([]),
        trials=[
            Trial(
                "proof", {}, "measured", windows=[Window("baseline", 0, 0, 0, 0.0), Window("candidate", 0, 0, 0, nan)]
            )
        ],
    )


STATES = {
    "speedup": speedup,
    "diagnose": diagnose,
    "nothing-to-gain": nothing_to_gain,
    "failed-levers": failed_levers,
    "cut-off": cut_off,
    "no-samples": no_samples,
    "nasty": nasty,
    "long-paths": long_paths,
    "many-findings": many_findings,
    "absurd": absurd,
    "empty": Report,
}

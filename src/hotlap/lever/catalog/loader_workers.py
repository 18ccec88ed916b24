"""Load batches in worker processes that stay alive between epochs; without any where workers cost more than they do.

Evidence: The step waits for data while the DataLoader works in the training process, has fewer workers than cores,
starts its workers anew each epoch, or has workers whose batches take longer on their way than they take to load.

Gain: Loading overlaps with compute, so that the data wait falls to max(0, load / workers - compute). On few cores
workers and torch's threads fight: a thread that spins while it waits holds the core that a worker needs, and both take
longer than with fewer threads: both numbers are one decision. Samples that lie in memory already are loaded in less
time than a batch takes through a queue, a thread and shared memory.

Runtime: Before the training loader is first iterated, its num_workers, prefetch_factor and persistent_workers are set
in place; torch.set_num_threads is called when the setting asks for it. IterableDatasets are left alone (each worker
would yield everything), and so are datasets that hold device tensors or an open file, or cannot be sent to a worker,
and loaders without workers where the script holds a generator of random numbers of its own, of which each would have a
copy, or reads what draws leave behind (how many files were skipped), or that say how far they have come (state_dict). A
loader that had no workers is given back where the script changes in mid-pass what its samples are drawn from (settings,
a model): the next batch is as it would be without. Workers stay where what they have copies of can be compared before
each pass; if it has changed, others begin. Workers that the script prepares itself (a timeout, a start method, a
worker_init_fn whose source does more than to seed, set threads or signals) are not taken away. A pass within a pass
gets workers of its own.

Source: DataLoader(..., num_workers=N, persistent_workers=True, prefetch_factor=4).

Risk: Random draws made by augmentation move into the workers: same law, other draws. In a patched script persistent
workers keep their first copy of the dataset, whatever another file changes of it later; where the same file does,
nothing is written. Workers cost memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, step_with_loader
from hotlap.lever.loader_change import load_here, load_in_workers
from hotlap.lever.mid_pass import MidPass
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    pass

ID = "loader-workers"
TREATS = (
    "too-few-workers", "decode", "augment", "collate", "storage-read", "worker-startup", "workers-respawned",
    "thread-contention", "prefetch-depth", "network-storage", "small-files", "page-cache-exhausted", "linear-search",
    "whole-file-read", "reopened-per-sample", "parsed-per-sample", "needless-workers",
)  # fmt: skip
PRESERVES = "distribution"
CONFLICTS = ("background-fetch",)
NUMERIC = False

NONE: Setting = {"workers": 0, "prefetch": None, "torch_threads": None}
RULES = {
    "workers": Rule(int, 0, 256),
    "prefetch": Rule(int, 1, 64, optional=True),
    "torch_threads": Rule(int, 1, 1024, optional=True),
}


def evidence(findings: Findings) -> Finding | None:
    """The largest cause of waiting for a map-style DataLoader."""
    return first(findings, TREATS) if findings.script.loader is not None else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Workers from the cores; the thread count that leaves them room first."""
    loader = findings.script.loader
    if loader is None:
        return Refusal("The script has no DataLoader.")
    if loader.iterable:
        return Refusal("The dataset is an IterableDataset: each worker would yield all of it.")
    if finding.cause == "needless-workers":
        return [dict(NONE)]
    cores = max(machine.cores // max(findings.script.world_size, 1), 1)
    on_cpu = findings.script.device == "cpu"
    if cores == 1 and on_cpu and loader.num_workers == 0:
        return Refusal("There is one core, and the training uses it.")
    found: list[Setting] = []
    if loader.num_workers > 0 and not loader.persistent_workers:
        found.append({"workers": loader.num_workers, "prefetch": loader.prefetch_factor, "torch_threads": None})
    if finding.cause == "prefetch-depth" and loader.num_workers > 0:  # the same workers, more batches ahead
        return [{"workers": loader.num_workers, "prefetch": p, "torch_threads": None} for p in (8, 16)]
    spare = [1] if on_cpu and cores <= 2 else []
    for workers in dict.fromkeys([min(cores, 16), min(max(cores - 1, 1), 16), 1]):
        threads = [max(cores - workers, 1), None] if on_cpu else [None]
        for torch_threads in dict.fromkeys([*spare, *threads]):
            setting = {"workers": workers, "prefetch": 4, "torch_threads": torch_threads}
            if setting not in found and (workers != loader.num_workers or torch_threads is not None):
                found.append(setting)
    if loader.num_workers > 0:
        found.append(dict(NONE))
    gains = {id(s): gain(finding, findings, s) for s in found}
    return sorted(found, key=lambda s: -(gains[id(s)].low_s + gains[id(s)].high_s))[:4]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Data wait and compute of today minus those of the step model with the new workers and threads.

    Where it may lose, two thirds of the best case are the most that is hoped for: on full cores a third came true.
    """
    model = findings.step_model
    now = model.data_wait_s + model.compute_s
    if setting["workers"] == 0:
        most = now + model.epoch_start_s - step_with_loader(model, 0, None)[0]
        return bounded(findings, 0.5 * most, most, "modelled")
    best, worst = step_with_loader(model, setting["workers"], setting["torch_threads"])
    kept_alive = 0.7 * model.epoch_start_s if model.workers else 0.0
    same = model.workers == setting["workers"] and setting["torch_threads"] is None
    if same:
        deeper = finding.seconds_per_step if finding.cause == "prefetch-depth" else 0.0
        return bounded(findings, 0.3 * kept_alive, max(model.epoch_start_s, deeper), "modelled")
    most = now - best if worst < now else (now - best) * 2 / 3
    return bounded(findings, now - worst, most + kept_alive, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types and ranges. As many workers as the script has are allowed on any machine: only they stay alive."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Change each training loader just before it is first iterated."""
    if setting["workers"] == 0:
        target.on_loader(lambda loader: load_here(target, loader))
        return
    passes = MidPass(target)
    target.on_loader(lambda loader: load_in_workers(target, loader, setting, passes))


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Keywords of the DataLoader (without workers, torch's defaults of those that only workers allow), and the thread
    count before it."""
    where = place(*finding.where)
    keywords: dict[str, Any] = {"num_workers": setting["workers"], "persistent_workers": setting["workers"] > 0}
    if setting["prefetch"] is not None or setting["workers"] == 0:
        keywords["prefetch_factor"] = setting["prefetch"]
    found = [Edit("set_keyword", where.file, where.line, target="DataLoader", keywords=keywords)]
    if setting["torch_threads"] is not None:
        code = f"torch.set_num_threads({setting['torch_threads']})"
        found.append(Edit("insert_before", where.file, where.line, target="DataLoader", code=code))
    return found

"""What is told of each benchmark's results. Most speak for themselves; some are raw data, to be summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpu_teller import gpu_lines
from loader_tellers import loader_rows
from loops_teller import loops_rows
from quality_teller import quality_rows
from reliability_tellers import (
    drift_rows,
    fuzz_rows,
    kill_rows,
    padding_rows,
    patched_rows,
    power_rows,
    real_proofs_rows,
    soak_rows,
    steady_day_rows,
)
from result_values import rows, spread, value

from hotlap.report import units

__all__ = ["Told", "told"]

ONE_RUN = "Each figure is of a single run: how much runs differ was not measured."


@dataclass
class Told:
    """Rows of a table; lines that the benchmark wrote itself; a sentence after them."""

    rows: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    after: str = ""


def told(stem: str, document: dict[str, Any]) -> Told:
    """What to say of the results that lie under the name ``stem``."""
    for name, teller in TELLERS.items():
        if stem == name or stem.startswith(f"{name}_"):
            return teller(document)
    return _any(document)


def _any(document: dict[str, Any]) -> Told:
    """Everything, by its own names. Where it was written down what is wanted, that stands beside."""
    figures = dict(document["figures"])
    asked = figures.pop("asked", None)
    wanted = asked if isinstance(asked, dict) else {}
    if asked is not None and not wanted:
        figures["wanted"] = asked
    found = []
    for name, words in rows(figures):
        last = name.rpartition(" · ")[2]
        want = f" (wanted: {value(last, wanted[last])})" if last in wanted else ""
        found.append((name, words + want))
    spreads = any("[" in words for _, words in found)
    return Told(found, after="" if spreads else ONE_RUN)


def _demo(document: dict[str, Any]) -> Told:
    f = document["figures"]
    hand = f["by_hand"]
    found = [
        ("causes found, of those put in", f"{f['causes_found']} of {f['causes_put_in']}"),
        ("… at their line", f"{f['causes_at_their_line']} of {f['causes_put_in']}"),
        ("speedup by the tool", str(value("speedup", f["speedup"]))),
        ("speedup by hand", spread("ratios", hand["ratios"])),
        ("the tool's over the hand's", units.ratio(f["tool_over_hand"])),
        ("share of the roof", units.share(f["roof_share"])),
        ("quality", str(value("quality", f["quality"]))),
        ("the whole command", units.seconds(f["command_s"])),
    ]
    for number, run in enumerate(f.get("runs") or document.get("other_runs", []), 1):
        words = [str(value("speedup", run["speedup"])), f"{units.share(run['roof_share'])} of the roof",
                 f"quality {value('quality', run['quality'])}", units.seconds(run["command_s"])]  # fmt: skip
        found.append((f"{'run' if f.get('runs') else 'another run that day,'} {number}", ", ".join(words)))
    return Told(found)


def _frameworks(document: dict[str, Any]) -> Told:
    levers = document["figures"]["levers"]
    found = []
    for name, version in document["figures"]["versions"].items():
        states = Counter(cells[name]["state"] for cells in levers.values())
        words = ", ".join(f"{state} {count}" for state, count in sorted(states.items(), key=lambda kv: (-kv[1], kv[0])))
        found.append((f"{name} ({version})", f"{len(levers)} levers: {words}"))
    return Told(found, after="Lever by lever: [levers by framework](reference/levers-by-framework.md).")


def _harmless(document: dict[str, Any]) -> Told:
    f = document["figures"]
    found = [("awkward scripts that behave the same when watched", f"{f['zoo_same']} of {f['zoo_run']}")]
    found += [(f"check: {name}", str(value(name, held))) for name, held in f["checks"].items()]
    return Told([*found, ("differences", str(value("differences", f["differences"])))])


def _honesty(document: dict[str, Any]) -> Told:
    f = document["figures"]
    found = [("false claims", f"{f['false_claims']} of {sum(map(len, f['intervals'].values()))} comparisons")]
    for script, intervals in f["intervals"].items():
        low, middle, high = zip(*intervals, strict=True)
        words = f"{spread('ratios', list(middle))}; bounds from {units.ratio(min(low))} to {units.ratio(max(high))}"
        found.append((f"{script} against itself, level {f['level']:g}", words))
    kept = str(value("kept", f["healthy"]["kept"]))
    return Told([*found, ("levers kept on the healthy script", kept), ("its verdict", f["healthy"]["verdict"])])


def _faults(document: dict[str, Any]) -> Told:
    f = document["figures"]
    score, asked = f["score"], f["asked"]
    wanted = {name: f"{units.share(share)}" for name, share in asked.items()}
    found = [
        ("right first cause, of the slow scripts", f"{units.share(score['cause'])} (wanted: {wanted['cause']})"),
        ("right line", f"{units.share(score['line'])} (wanted: {wanted['line']})"),
        ("red herrings taken", str(score["herrings_taken"])),
    ]
    if score["alone"] is not None:
        healthy = [row["alone"] for row in f["scripts"].values() if "alone" in row]
        words = f"{sum(healthy)} of {len(healthy)} that were measured"
        found.append(("healthy scripts left alone", f"{words} (wanted: {wanted['alone']})"))
    if score["recovered"] is not None:
        words = f"{units.share(score['recovered'])}, geometric mean of {score['treated']} scripts"
        found.append(("of the speedup by hand, without touching the code", f"{words} (wanted: {wanted['recovered']})"))
    if score["traceml_judged"]:
        words = f"{units.share(score['traceml_phase'])} of {score['traceml_judged']} scripts, and no line"
        found.append(("right part of the step, by TraceML", f"{words}; no verdict on {score['traceml_silent']} others"))
    found += [(name, _fault(row)) for name, row in f["scripts"].items()]
    left = ", ".join(f["not_run"])
    machines = Counter(row["machine"]["cpu"] for row in f["scripts"].values())
    where = ", ".join(f"{count} by {cpu}" for cpu, count in machines.most_common())
    after = f"{len(f['scripts'])} scripts: {where}. " + (f"**Not measured: {left}.**" if left else "")
    return Told(found, after=after)


def _fault(row: dict[str, Any]) -> str:
    """What was found in one script, whether it is right, and what was gained."""
    words = []
    if "alone" in row:
        words.append("left alone" if row["alone"] else "NOT LEFT ALONE")
    else:
        first = row["findings"][0]["cause"] if row["findings"] else "nothing"
        words += [f"{first}: {'right' if row['cause'] else 'WRONG'}", f"line {'right' if row['line'] else 'WRONG'}"]
    if "share" in row:
        gained, by_hand = (units.ratio(row[arm]["ratio"]) for arm in ("speedup", "by_hand"))
        kept = ", ".join(row["speedup"]["kept"]) or "no lever"
        if row["speedup"]["kept"] and row["speedup"].get("interval", True) is None:
            kept += ", which the proof could not tell from the script"
        words.append(f"{gained} ({kept}) beside {by_hand} by hand")
    return "; ".join(words)


def _lint(document: dict[str, Any]) -> Told:
    f = document["figures"]
    seconds = units.seconds(f["wall_s"])
    found = [
        ("read", f"{units.count(f['files'])} files of {f['repositories']} public repositories in {seconds}, "
                 f"{f['files_unread']} unreadable"),
        ("right, of the findings that were read by hand", f"{f['right']} of {f['judged']}"),
        ("findings in all", units.count(f["findings"])),
    ]  # fmt: skip
    for cause, row in f["by_cause"].items():
        found.append((cause, f"{row['right']} of {row['judged']} right; {row['findings']} found"))
    return Told(found, after=" ".join(f["notes"]))


def _overhead(document: dict[str, Any]) -> Told:
    f = document["figures"]
    runs = {len(arm) for loop in f["seconds_per_step_and_whole_process"].values() for arm in loop.values()}
    after = f"Medians of {', '.join(map(str, sorted(runs)))} interleaved runs against the bare ones, with 95 % ranges."
    return Told(lines=f["told"], after=f"{after} `bare again` is the same script once more: what noise alone gives.")


def _prediction(document: dict[str, Any]) -> Told:
    f = document["figures"]
    score = f["score"]
    found = [
        ("levers tried", f"{score['levers']}, on {score['scripts']} scripts"),
        ("error, median, of the step", units.share(score["error_frac"])),
        ("… of those kept", units.share(score["error_kept_frac"])),
        ("… of those put back", units.share(score["error_put_back_frac"])),
        ("predicted too much (+) or too little (-), median", units.signed_share(score["signed_frac"])),
        ("predictions within the interval of the measurement", f"{score['within_interval']} of {score['levers']}"),
    ]
    counts = Counter(entry["lever"] for entries in f["scripts"].values() for entry in entries)
    for lever, error in score["error_by_lever"].items():
        found.append((lever, f"error {units.share(error)}, tried {counts[lever]} times"))
    return Told(found, after="Each lever was tried once on a script; predicted and measured are shares of its step.")


def _memory(document: dict[str, Any]) -> Told:
    f = document["figures"]
    found = [
        ("steps", units.count(f["steps"])),
        ("memory of the script alone", f"{units.plain(f['bare_mb'])} MB"),
        ("watched", f"{units.plain(f['watched_mb'])} MB"),
        ("added", f"{units.plain(f['added_mb'])} MB"),
    ]
    return Told(found, after=ONE_RUN)


def _ladder(document: dict[str, Any]) -> Told:
    f = document["figures"]
    found = []
    first, *others = [*f["rows"], *f["presets"]]
    for row in [first, *others]:
        words = [
            f"{units.per_s(row['samples_per_s'])} samples/s",
            f"{units.share(row['of_roof'])} of its roof",
            f"{units.share(row['steps_of_roof'])} without evaluations, checkpoints and epochs' starts",
        ]
        if row is not first:
            spread = value("factor", row["cumulated"]) if row["turns"] > 1 else units.ratio(row["cumulated"]["median"])
            rounds = f"{row['turns']} rounds" if row["turns"] > 1 else "one round, so no spread is known"
            words[:0] = [f"{spread} of slow in {rounds}"]
        if len(others) > 1 and row is not first:
            words.insert(1, f"{units.ratio(row['factor']['median'])} of the one before")
        found.append((row["name"], ", ".join(words)))
    found += [(f"FAILED {name}", str(reason)) for name, reason in f["failed"].items()]
    head = "**SIMULATED device, not measured on one.** " if f["simulated"] else ""
    return Told(found, after=f"{head}{f['about']}.")


def _self_tuned(document: dict[str, Any]) -> Told:
    f = document["figures"]
    tool = f["tool"]
    found = [
        ("levers that hotlap speedup kept", ", ".join(tool["kept"]) or "none"),
        ("its verdict", tool["verdict"]),
        ("plan over slow, by the clock outside", str(value("plan", f["plan_over_slow"]))),
        ("by hand over slow, at the same model, batch and cadences", str(value("hand", f["hand_over_slow"]))),
        ("the plan's share of the tuning by hand", f"{value('share', f['share'])} (wanted: {f['asked']:g})"),
        ("its budget", f.get("budget", "the default")),
        *([("set for all arms alike", ", ".join(f["set"]))] if f.get("set") else []),
        ("the whole command", units.seconds(tool["command_s"])),
    ]
    none = "" if f["plan_found"] else " No plan was found, so that the plan's arm is the slow preset itself."
    window = f" Of {f['steps']} steps, after the first {f['after']}." if "after" in f else ""
    window += " In turns: each arm is frozen while another runs." if f.get("turns") else ""
    return Told(found, after=f"On {f['data']}, {len(f['steps_per_s']['hand'])} rounds.{window}{none}")


TELLERS: dict[str, Callable[[dict[str, Any]], Told]] = {
    "demo": _demo,
    "drift": lambda document: Told(drift_rows(document)),
    "faults": _faults,
    "frameworks": _frameworks,
    "fuzz": lambda document: Told(fuzz_rows(document)),
    "gpu": lambda document: Told([], gpu_lines(document)),
    "harmless": _harmless,
    "honesty": _honesty,
    "kill": lambda document: Told(kill_rows(document)),
    "ladder": _ladder,
    "lint": _lint,
    "loader": lambda document: Told(loader_rows(document)),
    "loops": lambda document: Told(loops_rows(document)),
    "memory": _memory,
    "overhead": _overhead,
    "prediction": _prediction,
    "padding": lambda document: Told(padding_rows(document)),
    "patched": lambda document: Told(patched_rows(document)),
    "power": lambda document: Told(power_rows(document)),
    "real_proofs": lambda document: Told(real_proofs_rows(document)),
    "quality": lambda document: Told(quality_rows(document)),
    "self_tuned": _self_tuned,
    "soak": lambda document: Told(soak_rows(document)),
    "steady_day": lambda document: Told(steady_day_rows(document)),
}
"""By the beginning of the file's name; for all others, everything is told by its own name."""

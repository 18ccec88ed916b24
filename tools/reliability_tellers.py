"""What is told of patched scripts and of the benchmarks of reliability: rates, kills, fuzzing, memory over a day."""

from __future__ import annotations

from statistics import median
from typing import Any

from hotlap.report import units

__all__ = ["drift_rows", "fuzz_rows", "kill_rows", "padding_rows", "patched_rows", "power_rows", "real_proofs_rows",
           "soak_rows", "steady_day_rows"]  # fmt: skip

Rows = list[tuple[str, str]]


def _rate(found: dict[str, Any]) -> str:
    low, high = units.share(found["low"]), units.share(found["high"])
    return f"{units.share(found['share'])} [{low}, {high}] of {units.count(found['n'])}"


def power_rows(document: dict[str, Any]) -> Rows:
    """False claims first, then what a true 3 % comes to."""
    f = document["figures"]
    wanted = f["wanted"]
    found: Rows = [
        (f"wanted: {name}, {'at least' if name == '3 % seen' else 'at most'}", units.share(share))
        for name, share in wanted.items()
    ]
    for name, row in f["machines"].items():
        at = row["by true ratio"]
        of_kept, alone = at["1"]["claimed, of those kept"], at["1"]["claimed by a proof"]
        words = f"{_rate(at['1']['claimed by a lap'])}; of the levers kept {_rate(of_kept)}; by a proof {_rate(alone)}"
        found.append((f'false "faster", simulated, {name}', words))
        needed = f["launches_for_3_percent"][name]
        more = f"a proof needs {needed} pairs of launches" if needed else "no number of launches tried is enough"
        words = f"search {_rate(at['1.03']['kept'])}, proof {_rate(at['1.03']['claimed by a proof'])}; {more}"
        found.append((f"a true 3 % seen, simulated, {name}", words))
    for name, row in f["equal_arms"].items():
        at = row["claimed by true ratio"]
        least = units.ratio(row["least ratio seen by 90 %"])
        words = f'false "faster" {_rate(at["1"])}; a true 3 % seen {_rate(at["1.03"])}; 90 % would see {least}'
        found.append((f"real launches of the {name} script", words))
    for name, row in f["quality"].items():
        found.append((f'false "non-inferior", {name}', f"{_rate(row['false'])}; true ones {_rate(row['true'])}"))
    return found


def real_proofs_rows(document: dict[str, Any]) -> Rows:
    """Whole proofs whose truth is known: how many were claimed, and what they measured."""
    found: Rows = []
    for name, row in document["figures"].items():
        claimed = f"{row['claimed']} of {row['n']}" + (f", {row['failed']} not measured" if row["failed"] else "")
        found.append((f'"faster" said, {name}', claimed))
        if not row["intervals"]:
            continue
        middles = sorted(ratio for _, ratio, _ in row["intervals"])
        words = f"{units.ratio(median(middles))} [{units.ratio(middles[0])}, {units.ratio(middles[-1])}]"
        found.append((f"… what they measured, {name}", words))
        found.append((f"… pairs of launches, {name}", f"{median(row['launches']):g} [{min(row['launches'])}, "
                      f"{max(row['launches'])}]"))  # fmt: skip
    return found


def padding_rows(document: dict[str, Any]) -> Rows:
    """What cutting padding saves, by how batches are padded."""
    found: Rows = []
    for padded, arms in document["figures"]["padded"].items():
        for arm, row in arms.items():
            low, high = (units.ratio(end(row["ratios"])) for end in (min, max))
            speed = f"{units.ratio(median(row['ratios']))} [{low}, {high}] steps per second, "
            content = f"content {units.share(median(row['content']))} of what is computed"
            found.append((f"padded {padded}, {arm}", content if arm == "bare" else speed + content))
    return found


def patched_rows(document: dict[str, Any]) -> Rows:
    """How a patched script does beside its plan, script by script."""
    f = document["figures"]
    scripts = f["scripts"]
    least = 1 - f["asked"]
    behind = [row for row in scripts.values() if row["ratio"] < least]
    found = [
        ("patched script over its plan, steps per second", units.ratio(median(r["ratio"] for r in scripts.values()))),
        (f"scripts whose median is below {units.ratio(least)}", f"{len(behind)} of {len(scripts)}"),
        ("… in every round", str(sum(max(row["ratios"]) < least for row in behind))),
    ]
    for name, row in scripts.items():
        low, high = (units.ratio(end(row["ratios"])) for end in (min, max))
        words = f"{units.ratio(row['ratio'])} [{low}, {high}] in {len(row['ratios'])} rounds"
        found.append((f"{name}, {row['lever']}", words if row["changed"] else f"{words}; NOTHING WAS WRITTEN"))
    return found + [(f"{name}: not measured", why) for name, why in f["skipped"].items()]


def kill_rows(document: dict[str, Any]) -> Rows:
    """Kills that left everything as it was, and per command what was not."""
    f = document["figures"]
    found: Rows = [
        ("kills that left everything as it was", f"{units.count(f['clean'])} of {units.count(f['kills'])}"),
        ("the same, moments after the command had ended", f"{f['ended_clean']} of {f['had_ended']}"),
    ]
    for name, row in f["by_command"].items():
        wrong = {check: n for check, n in row.items() if check not in ("kills", "went_on") and n}
        words = ", ".join(f"not {check}: {n}" for check, n in wrong.items()) or "nothing wrong"
        found.append((name, f"{row['kills']} kills, the next command run after {row['went_on']}: {words}"))
    return found


def fuzz_rows(document: dict[str, Any]) -> Rows:
    """Minutes and inputs of each reader."""
    f = document["figures"]
    found: Rows = [("minutes in all", units.plain(f["minutes"])), ("inputs that broke a reader", str(f["broken"]))]
    for name, row in f["by_reader"].items():
        words = f"{units.count(row['inputs'])} inputs in {units.plain(row['minutes'])} minutes, broken {row['broken']}"
        found.append((name, words))
    return found


def soak_rows(document: dict[str, Any]) -> Rows:
    """Slopes of memory, and the timeline's size."""
    f = document["figures"]
    found: Rows = [("wanted: growth, at most", f"{units.plain(f['flat_mib_per_day'])} MiB a day")]
    slopes = {"the script without Hotlap": ("run", "bare_script"), "the script under hotlap run": ("run", "script"),
              "hotlap run itself": ("run", "hotlap"), "the guard over a made timeline": ("guard", "guard")}  # fmt: skip
    for name, (part, key) in slopes.items():
        if f[part] is not None:
            row = f[part][key]
            line = f"{row['per_day']:+.2f} MiB a day [{row['low']:+.2f}, {row['high']:+.2f}]"
            found.append((name, f"{line}, {row['first_mib']:.0f} to {row['last_mib']:.0f} MiB"))
    for part in ("run", "guard"):
        if f[part] is not None:
            steps, size = units.count(f[part]["steps"]), units.bytes_(f[part]["timeline_bytes"])
            limit = units.bytes_(f["timeline_limit_bytes"])
            found.append((f"timeline of {steps} steps", f"{size} (wanted: at most {limit})"))
    return found


def drift_rows(document: dict[str, Any]) -> Rows:
    """What was said of each kind of slow-down, and when."""
    f = document["figures"]
    faulty = [row for row in f["kinds"] if row["changed_at"] is not None]
    good = sum(row["found"] and row["right"] for row in faulty)
    found: Rows = [
        ("found in time with the right cause", f"{good} of {len(faulty)} kinds"),
        ("false alarms", f"{sum(row['false_alarms'] for row in f['kinds'])} in {len(f['kinds'])} runs"),
    ]
    for row in f["kinds"]:
        words = "no warning"
        if row["cause"]:
            late = "" if row["found"] else ", late"
            wrong = "" if row["right"] else ", WRONG cause"
            words = f"{row['cause']} after {row['after_s']:.0f} s, {row['after_steps']} steps{late}{wrong}"
        more = f", {row['false_alarms']} false alarms" if row["false_alarms"] else ""
        found.append((row["kind"], words + more))
    return found + [(f"{name}: not measured", why) for name, why in f["not_measured"].items()]


def steady_day_rows(document: dict[str, Any]) -> Rows:
    """Warnings of a day in which nothing happened."""
    f = document["figures"]
    hours, steps = f"{f['hours']:g}", units.count(f["steps"])
    drawn = f"{f['stretches']} stretches of five seconds"
    found: Rows = [("false warnings", f"{len(f['alarms'])} in {hours} hours, {steps} steps, drawn from {drawn}")]
    return found + [(f"at step {units.count(alarm['at_step'])}", alarm["cause"]) for alarm in f["alarms"]]

"""What is told of the reference trainings' plain loop beside Lightning's and Accelerate's."""

from __future__ import annotations

from typing import Any

from result_values import value

from hotlap.report import units

__all__ = ["loops_rows"]


def loops_rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Ours over each framework, whether the losses agree, then each loop's speed; loops that could not run."""
    found: list[tuple[str, str]] = []
    for workload, row in document["figures"]["workloads"].items():
        for name, over in row["ours_over"].items():
            losses = "the same losses to the last bit"
            if not over["equal_bits"]:
                losses = f"losses differ by {units.share(over['largest_relative_difference'])} at most"
            found.append((f"{workload}: ours over {name}", f"{value('factor', over)}, {losses}"))
        for name, loop in row["loops"].items():
            low, high = (units.per_s(speed) for speed in loop["samples_per_s_range"])
            speed = f"{units.per_s(loop['samples_per_s'])} samples/s [{low}, {high}] in {loop['turns']} turns"
            found.append((f"{workload}: {name}", speed))
        found += [(f"FAILED {workload}: {name}", str(reason)) for name, reason in row["failed"].items()]
    return found

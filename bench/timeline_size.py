"""Size of the timeline of a simulated run of ten million steps, driven through the recorder with a fake clock.

Prints the size last. ``--steps N`` for another length; ``--save`` writes bench/results/timeline_size.json.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from results import save

from hotlap.probe.recorder import BACKWARD, DATA_WAIT, FORWARD, H2D, OPTIMIZER, ZERO_GRAD, Recorder
from hotlap.probe.sites import Pace
from hotlap.probe.step_rows import StepRows
from hotlap.probe.writer import Appender, row_text
from hotlap.records.rows import Hits, Load, Site, Tick

STEP_NS = 60_000_000
"""One step of the simulated run: 60 ms, so that ten million take a week."""
LIMIT_BYTES = 64 * 2**20


class Clock:
    """Moves only when told."""

    now = 7_000_000_000_000

    def __call__(self) -> int:
        return self.now


def simulate(steps: int, path: str) -> int:
    """Write the timeline of ``steps`` steps; returns its size in bytes."""
    clock = Clock()
    rec = Recorder(clock)
    text = StepRows(frozenset({H2D}))
    file = Appender(path)
    paces = {"hits": Pace(1.0, 0.02), "site": Pace(), "load": Pace(1.0, 0.0005), "tick": Pace(1.0, 0.0005)}
    rec.sign_of_training()
    for step in range(steps):
        for phase, share in ((DATA_WAIT, 9), (ZERO_GRAD, 60), (FORWARD, 4), (BACKWARD, 3), (OPTIMIZER, 12)):
            rec.enter(phase)
            clock.now += STEP_NS // share + (step * 7919) % 1001
            rec.leave()
        rec.samples, rec.micro, rec.losses = 128, 1, [2.0 / (1 + step % 977) + 0.123456789012345]
        rec.end_step()
        if step % 1000 == 0:
            now = clock.now
            if paces["hits"].due(now):
                rec.emit(Hits(now, 10_000_000, [[s, s % 12, 1234] for s in range(150)]))
            if paces["site"].due(now):
                for frame in range(12):
                    rec.emit(Site(now, "sync", "item", frame, 12345, 123456789))
            if paces["load"].due(now):
                rec.emit(Load(now, 10**9, 12345, 1234567, 123456789, 123456789, 123456789, 123456789))
            if paces["tick"].due(now):
                rec.emit(Tick(now, 2**31, 10**15, 2**31, 2**40, 2**40))
            file.write("".join([row_text(row) for row in rec.rows] + text.text(rec.steps)))
            rec.rows.clear()
            rec.steps.clear()
    file.write("".join(text.text(rec.steps) + text.rest()))
    file.close()
    return os.path.getsize(path)


def main() -> None:
    """Simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--save", action="store_true", help="write bench/results/timeline_size.json")
    options = parser.parse_args()
    steps = options.steps
    with tempfile.TemporaryDirectory() as folder:
        size = simulate(steps, os.path.join(folder, "timeline.jsonl"))
    if options.save:
        save("timeline_size", {"steps": steps, "bytes": size, "limit_bytes": LIMIT_BYTES})
    verdict = "below" if size < LIMIT_BYTES else "ABOVE"
    print(f"timeline of {steps:,} steps: {size / 2**20:.1f} MiB ({verdict} the limit of {LIMIT_BYTES / 2**20:.0f} MiB)")


if __name__ == "__main__":
    main()

"""A script that writes the timeline of a training itself. argv: FOLDER KEY=VALUE... (see the defaults)."""

import json
import os
import sys
import time

given = dict(pair.split("=") for pair in sys.argv[2:])
step_s, steps = float(given.get("step_s", 0.02)), int(given.get("steps", 100000))
pause_every, pause_s = int(given.get("pause_every", 0)), float(given.get("pause_s", 0.1))
stop_at, how = int(given.get("at", -1)), given.get("how", "")
path = os.path.join(sys.argv[1], f"train-{os.getpid()}.jsonl")
out = open(path, "w", buffering=1)  # noqa: SIM115 - open until the end


def row(k, **values):
    out.write(json.dumps({"k": k, **values}) + "\n")


row(
    "header",
    schema="hotlap.timeline/1",
    hotlap="0",
    role="train",
    pid=os.getpid(),
    ppid=os.getppid(),
    rank=0,
    world=1,
    argv=sys.argv,
    cwd=os.getcwd(),
    python="3",
    torch="2",
    device="cpu",
    t=time.monotonic_ns(),
    unix_s=time.time(),
)
if "mark" in given:
    row(
        "mark", kind="lever", id="some-lever", state=given["mark"], count=int(given["mark"] == "applied"), why="because"
    )
print("training")
for i in range(steps):
    begin = time.monotonic_ns()
    if i == stop_at:
        exec(how.replace("+", " "))
    every = int(given.get("validate_every", 0))
    validation = 0
    if every and i % every == every - 1:
        t = time.monotonic_ns()
        time.sleep(0.03)
        validation = time.monotonic_ns() - t
        row("event", kind="validation", t=t, w=validation, i=i)
    time.sleep(step_s)
    if pause_every and i % pause_every == pause_every - 1:
        time.sleep(pause_s)
    wall = time.monotonic_ns() - begin
    phases = [0, 0, wall - validation, 0, 0, 0, validation, 0, 0, 0, 0, 0]
    row("step", i=i, n=1, t=begin, w=wall, p=phases, s=4, m=1, l=[1.0 / (i + 1)])
row("end", t=time.monotonic_ns(), reason="end")

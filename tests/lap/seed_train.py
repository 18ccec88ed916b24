"""A script that writes the timeline of a training itself, as Hotlap's call asks. argv: KEY=VALUE... (see below)."""

import fcntl
import json
import math
import os
import random
import sys
import time

given = dict(pair.split("=") for pair in sys.argv[1:])
with open(os.environ["HOTLAP_CALL"]) as file:
    call = json.load(file)
candidate = bool(call["moves"])
seed = int(given.get("seed", 0)) + call["seed_offset"]
steps = int(given.get("steps", 20))
step_s = float(given.get("candidate_s", 0.01)) if candidate else 0.03
out = open(os.path.join(call["timeline_dir"], f"train-{os.getpid()}.jsonl"), "w", buffering=1)  # noqa: SIM115


def row(k, **values):
    out.write(json.dumps({"k": k, **values}) + "\n")


row(
    "header", schema="hotlap.timeline/1", hotlap="0", role="train", pid=os.getpid(), ppid=os.getppid(), rank=0,
    world=int(given.get("ranks", 1)), argv=sys.argv, cwd=os.getcwd(), python="3", torch="2",
    device=given.get("device", "cpu"), t=time.monotonic_ns(), unix_s=time.time(),
)  # fmt: skip
for move in call["moves"]:
    state = given.get("lever", "applied")
    row("mark", kind="lever", id=move["lever"], state=state, count=int(state == "applied"), why="nothing there")
if "hold" in given:  # memory for one at a time
    held = open(given["hold"], "w")  # noqa: SIM115 - until the end
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MemoryError("no room for two") from None
draw = random.Random(seed if given.get("by") != "nothing" else 0)
own = random.Random()  # seeded by the system: never the same twice
for i in range(steps):
    begin = time.monotonic_ns()
    if candidate and i == int(given.get("crash", -1)):
        raise RuntimeError("the plan broke it")
    time.sleep(step_s)
    loss = 0.5 + 2.5 * math.exp(-i / 8) + 0.02 * draw.random()
    loss += 1e-6 * own.random() if given.get("repeats") == "no" else 0.0
    if candidate and i >= int(given.get("differs", steps)):
        loss += 1e-7
    wall = time.monotonic_ns() - begin
    if "every" in given and i % int(given["every"]) == 0:
        print("EER:", 5 + 0.01 * seed + i)
    row("step", i=i, n=1, t=begin, w=wall, p=[0, 0, wall] + [0] * 9, s=4, m=1, l=[loss])
print("EER:", 5 + 0.01 * seed, flush=True)
row("end", t=time.monotonic_ns(), reason="end")

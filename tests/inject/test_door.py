"""What a script sees when the door is open: nothing. What it leaves: a timeline."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

from hotlap.inject import door
from hotlap.records.call import Call
from hotlap.records.plan import Move
from hotlap.records.timeline import Timeline, training_timeline

TRAINING = """
import torch
torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
"""


def run(tmp_path: Path, source: str, **call: object) -> tuple[subprocess.CompletedProcess[str], Timeline | None]:
    script = tmp_path / "train.py"
    script.write_text(source)
    timelines = Path(tempfile.mkdtemp(dir=tmp_path))
    env = door.environment(Call(timeline_dir=str(timelines), **call))  # type: ignore[arg-type]
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=100)
    errors = [p.read_text() for p in timelines.glob("*.error")]
    assert errors == []
    return done, training_timeline(timelines)


def bare(source: str) -> str:
    """What the source prints without Hotlap: in this process, which has torch already."""
    with redirect_stdout(io.StringIO()) as out, torch.random.fork_rng([]):
        exec(compile(source, "train.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def test_same_output_and_a_timeline(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    alone = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100)
    done, timeline = run(tmp_path, TRAINING)
    assert done.stdout == alone.stdout
    assert done.stderr == alone.stderr == ""
    assert timeline is not None
    assert timeline.n_steps == 32
    losses = [row.l[-1] for row in timeline.step]
    assert [float.fromhex(line) for line in alone.stdout.split()] == losses


def test_sys_path_and_sitecustomize_are_the_users(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; sys.own_sitecustomize = True\n")
    script = tmp_path / "look.py"
    script.write_text("import sys, sitecustomize; print(sys.own_sitecustomize, sys.path, sitecustomize.__file__)\n")
    base = {**os.environ, "PYTHONPATH": str(tmp_path / "own")}
    alone = subprocess.run([sys.executable, str(script)], env=base, capture_output=True, text=True, timeout=60)
    env = door.environment(Call(timeline_dir=str(tmp_path)), base)
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == alone.stdout
    assert done.stdout.startswith("True")


def test_a_lever_is_applied_and_reported(tmp_path: Path) -> None:
    move = Move("loader-workers", {"workers": 1, "prefetch": 2, "torch_threads": None}, "distribution")
    _, timeline = run(tmp_path, TRAINING, mode="trial", moves=[move], cores=2, scratch=str(tmp_path))
    assert timeline is not None
    marks = [m for m in timeline.mark if m.id == "loader-workers"]
    assert marks[-1].state == "applied", marks
    assert timeline.workers, "the worker left no timeline"


DISTILLED = """
import sys, torch
from torch import nn
torch.manual_seed(0)
teacher = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten()).requires_grad_(False).eval()
student = nn.Sequential(nn.Flatten(), nn.Linear(192, 144))
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(16, 3, 8, 8))
for epoch in range(4):
    for (x,) in torch.utils.data.DataLoader(data, 4, shuffle=True):
        seen = x + float(sys.argv[1]) * torch.randn_like(x)
        loss = nn.functional.mse_loss(student(x), teacher(seen))
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        print(loss.item())
print("forward" in vars(teacher))
"""


@pytest.mark.parametrize(
    ("noise", "state"), [pytest.param("0.0", "applied", marks=pytest.mark.cousin), ("0.1", "no-effect")]
)
def test_a_lever_says_why_it_had_no_effect(tmp_path: Path, noise: str, state: str) -> None:
    script = DISTILLED.replace("sys.argv[1]", noise)
    move = Move("cache-teacher", {"max_bytes": 1 << 20}, "maths")
    done, timeline = run(tmp_path, script, mode="trial", moves=[move], cores=2, scratch=str(tmp_path))
    assert timeline is not None
    mark = [m for m in timeline.mark if m.id == "cache-teacher"][-1]
    assert mark.state == state and ("augmentation" in mark.why) is (state == "no-effect"), mark
    *losses, replaced = done.stdout.split()
    assert replaced == "True" and [float(v) for v in losses] == pytest.approx(
        [float(v) for v in bare(script).split()[:-1]], rel=1e-5
    )


def test_resident_batch(tmp_path: Path) -> None:
    _, timeline = run(tmp_path, TRAINING, mode="trial", ablate=["data"])
    assert timeline is not None
    assert [(m.id, m.state) for m in timeline.mark] == [("data", "applied")]
    assert timeline.n_steps == 32


def test_seeds_are_shifted(tmp_path: Path) -> None:
    same, _ = run(tmp_path, TRAINING, mode="trial")
    other, _ = run(tmp_path, TRAINING, mode="trial", seed_offset=1)
    assert same.stdout == bare(TRAINING)
    assert other.stdout != same.stdout


REPLAYED = """
import torch
class Told(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        print(index)
        return torch.ones(4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(Told(), batch_size=4):
    model(x).sum().backward()
    optimizer.step()
"""


def test_a_trial_replays_the_first_batches(tmp_path: Path) -> None:
    done, timeline = run(tmp_path, REPLAYED, mode="trial", replay_batches=2)
    assert timeline is not None
    assert timeline.n_steps == 6
    assert [int(line) for line in done.stdout.split()] == [*range(8)] * 3


VALIDATING = TRAINING.replace(
    "for epoch in range(2):",
    """
def evaluate(model):
    model.eval()
    with torch.no_grad():
        total = sum(model(x).sum().item() for x in data.tensors[0].split(8))
    model.train()
    print("validated")
    return total

for epoch in range(2):""",
).replace("        print(loss", "        evaluate(model)\n        print(loss")


def test_validation_is_replayed(tmp_path: Path) -> None:
    where = {"file": str(tmp_path / "train.py"), "function": "evaluate"}
    done, timeline = run(tmp_path, VALIDATING, mode="trial", ablate=["validation"], extra={"validation": where})
    assert timeline is not None
    assert ("validation", "applied") in [(m.id, m.state) for m in timeline.mark]
    assert 1 <= done.stdout.count("validated") <= 3
    full, timeline = run(tmp_path, VALIDATING)
    assert full.stdout.count("validated") == 32
    assert timeline is not None
    assert sum(e.kind == "validation" for e in timeline.event) >= 28


SAVES_OFTEN = """
import os
for number in range(3):
    state = model.state_dict() | {"number": torch.tensor(number)}
    torch.save(state, FOLDER + "/new.pt")
    os.replace(FOLDER + "/new.pt", FOLDER + f"/{number}.pt")
print("said", [int(torch.load(FOLDER + f"/{number}.pt")["number"]) for number in range(3)])
"""


@pytest.mark.parametrize("what", ["checkpoint", "logging"])
def test_saving_and_logging_are_taken_away(tmp_path: Path, what: str) -> None:
    before = f"FOLDER = {str(tmp_path)!r}\nimport torch\ntorch.save({{'number': 7}}, FOLDER + '/first.pt')\n"
    after = SAVES_OFTEN + "assert torch.load(FOLDER + '/first.pt')['number'] == 7\n"
    done, _ = run(tmp_path, before + TRAINING + after, mode="trial", ablate=[what])
    assert done.returncode == 0
    told = {"checkpoint": "said [0, 0, 0]", "logging": ""}[what]
    assert done.stdout.splitlines()[-1:] == ([told] if told else []), "what is read back is there"


BESIDE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
calls = []

class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    def forward(self, x):
        calls.append(len(x))
        return self.layers(x).tanh()

class Student(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
        self.beside = (teacher,)  # no part: not in its state, never trained
    def forward(self, x):
        with torch.no_grad():
            wanted = self.beside[0](x)
        return nn.functional.mse_loss(self.layers(x), wanted)

model = Student(Teacher().requires_grad_(False).eval())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(16, 12))
for epoch in range(10):
    for (x,) in DataLoader(data, batch_size=4, shuffle=True):
        loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(len(calls), f"{loss.item():.5f}")
"""


def test_a_teacher_that_is_no_part_of_the_model_is_met(tmp_path: Path) -> None:
    done, timeline = run(tmp_path, BESIDE, mode="run", moves=[Move("cache-teacher", {"max_bytes": 1 << 20}, "maths")])
    assert timeline is not None
    assert ("cache-teacher", "applied") in [(m.id, m.state) for m in timeline.mark]
    (plain, loss), (computed, same) = bare(BESIDE).split(), done.stdout.split()
    assert plain == "40" and int(computed) <= 4 + 1 + 4 + 3, "an epoch, the call before it was met, and the proofs"
    assert loss == same


LAST_SAVE_FAILS = """
import atexit, sys
atexit.register(lambda: torch.save({"a": torch.ones(3)}, sys.argv[0] + ".late.pt"))
import torch
atexit.register(lambda: print("at exit", flush=True))
torch.save({"a": torch.ones(2)}, sys.argv[0] + ".good.pt")
weight = torch.ones(2)
torch.save({"a": weight, "bits": weight.view(torch.int32)}, sys.argv[0] + ".bad.pt")
print("done")
"""


def test_a_last_checkpoint_that_was_not_written_is_told(tmp_path: Path) -> None:
    done, _ = run(tmp_path, LAST_SAVE_FAILS, mode="run", moves=[Move("checkpoint-async", {"pending": 1}, "bits")])
    assert done.stdout == "done\nat exit\n" and done.returncode == 120
    assert "view the same data as different types" in done.stderr, "torch.save refuses it"
    assert "bad.pt, written in the background" in done.stderr
    assert (tmp_path / "train.py.good.pt").stat().st_size > 0
    assert (tmp_path / "train.py.late.pt").stat().st_size > 0, "made behind the end of the guest"


FOLDS = """
import gc, multiprocessing, weakref
import torch
from torch import nn
torch.manual_seed(0)
made = []

def network():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())

class Clips(torch.utils.data.Dataset):
    def __init__(self):
        self.data = list(zip(torch.randn(16, 3, 8, 8), torch.randn(16, 4)))
    def __len__(self):
        return 16
    def __getitem__(self, index):
        return self.data[index][0] * 2, self.data[index][1]

def fold():
    clips = Clips()
    loader = torch.utils.data.DataLoader(clips, batch_size=4)
    student, teacher = network(), network().eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.1)
    made.extend(weakref.ref(thing) for thing in (clips, loader, student, teacher, optimizer))
    for epoch in range(2):
        for x, y in loader:
            wanted = teacher(x)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(student(x), y + wanted)
            loss.backward()
            optimizer.step()

for number in range(3):
    fold()
    gc.collect()
print([type(ref()).__name__ for ref in made if ref() is not None], len(multiprocessing.active_children()))
"""


def test_a_past_folds_loader_workers_and_models_are_let_go(tmp_path: Path) -> None:
    """And its data set, as soon as the next one is met."""
    settings: dict[str, dict[str, object]] = {
        "cache-sample": {"max_bytes": 1 << 20},
        "channels-last": {},
        "cache-teacher": {"max_bytes": 1 << 20},
        "loader-workers": {"workers": 1, "prefetch": 2, "torch_threads": None},
        "optimizer-fused": {"impl": "foreach"},
        "teacher-inference": {"dtype": "fp32", "channels_last": True},
    }
    moves = [Move(lever, setting, "maths") for lever, setting in settings.items()]
    done, timeline = run(tmp_path, FOLDS, mode="run", moves=moves, cores=2, scratch=str(tmp_path))
    assert timeline is not None and {m.id: m.state for m in timeline.mark} == dict.fromkeys(settings, "applied"), done
    assert done.stdout == "['Clips'] 0\n"

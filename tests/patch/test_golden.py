"""Each lever's edits make its golden `after.py` of its `before.py`; where bits are preserved, with equal figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from hotlap.lever.registry import lever
from hotlap.patch.patch import Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
GOLDEN = Path(__file__).parents[1] / "golden" / "lever"
FOLDERS = [
    p
    for p in sorted(GOLDEN.iterdir())
    if any(e["kind"] != "advice" for e in json.loads((p / "edits.json").read_text()))
]

CALLS = {
    "validation-no-grad": """
model = torch.nn.Linear(4, 2)
print(validate(model, [(torch.randn(3, 4), torch.tensor([0, 1, 1]))]))
""",
    "debug-off": """
model = torch.nn.Linear(4, 2)
train(model, torch.randn(3, 4), torch.tensor([0, 1, 1]))
print(model.weight.grad.tolist())
""",
    "checkpoint-async": """
model = torch.nn.Linear(4, 2)
save(model)
import threading
[t.join() for t in threading.enumerate() if "_write_all" in t.name]
print({k: v.tolist() for k, v in torch.load("x.pt").items()})
""",
}
"""What to run behind a golden source to get figures that must not change."""


def patched(folder: Path) -> bytes:
    edits = [Edit(**e) for e in json.loads((folder / "edits.json").read_text())]
    done = patch_file("before.py", (folder / "before.py").read_bytes(), [Wanted(e, folder.name) for e in edits])
    assert [told.line for told in done.by_hand] == [e.line for e in edits if e.kind == "advice"]
    return done.after


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_before_becomes_after(folder: Path) -> None:
    assert patched(folder).decode() == (folder / "after.py").read_text()
    assert b"hotlap" not in patched(folder)


@pytest.mark.parametrize("name", CALLS)
def test_bits_are_preserved(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert lever(name).PRESERVES == "bits"
    shown = []
    for source in ((GOLDEN / name / "before.py").read_bytes(), patched(GOLDEN / name)):
        code = source.decode() + "\ntorch.manual_seed(1)\n" + CALLS[name]
        was_anomaly = torch.is_anomaly_enabled()
        exec(compile(code, "golden.py", "exec"), {"__name__": "golden"})
        torch.set_anomaly_enabled(was_anomaly)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""

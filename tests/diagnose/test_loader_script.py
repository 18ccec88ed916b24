"""A script with the loader's sins, diagnosed as a user would: each under its name, with its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.flaky(reruns=2)
# Shares of the time of a real training: on a shared machine one of three runs may tell.

SCRIPT = """
import json
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N = 96

class Clips(Dataset):
    def __init__(self):
        self.names = [f"clip-{i}" for i in range(60_000)]

    def __len__(self):
        return N

    def __getitem__(self, i):
        with open("index.json") as f:
            row = json.load(f)[i]  # PARSED
        clip = numpy.load("clips.npy")[i]  # WHOLE
        place = self.names.index(f"clip-{59_000 + i}")  # SEARCH
        return clip, row["label"] + 0 * place

def collate(samples):
    clips, labels = zip(*samples)
    return torch.tensor(list(clips)), torch.tensor(labels)  # COLLATE

def main():
    with open("index.json", "w") as f:
        json.dump([{"label": i % 4, "path": f"a/b/{i}.wav"} for i in range(1000)], f)
    numpy.save("clips.npy", numpy.random.rand(200, 2000).astype("float32"))
    model = nn.Linear(2000, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        loader = DataLoader(Clips(), batch_size=4, shuffle=True, collate_fn=collate)
        for clips, labels in loader:
            loss = nn.functional.cross_entropy(model(clips), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

main()
"""


@pytest.mark.slow
def test_each_sin_has_its_name_and_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "hotlap", "diagnose", "--no-confirm", "--json", "out.json", "--"]
    done = subprocess.run(
        [*command, sys.executable, "-W", "ignore", "train.py"], cwd=tmp_path, capture_output=True, text=True,
        timeout=150, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = {f["cause"]: f for f in json.loads((tmp_path / "out.json").read_text())["findings"]}
    lines = SCRIPT.splitlines()
    marks = {
        "parsed-per-sample": "# PARSED", "whole-file-read": "# WHOLE", "linear-search": "# SEARCH",
        "collate": "# COLLATE",
    }  # fmt: skip
    for cause, mark in marks.items():
        assert cause in found, sorted(found)
        assert mark in lines[found[cause]["where"][0]["line"] - 1], found[cause]["where"]
    assert "numpy.stack" in found["collate"]["advice"]

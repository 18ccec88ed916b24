"""The scripts of the how-to pages train under the commands beside them, and are diagnosed as the page says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
SLOW_LINE = "float(word)"
LIMIT_S = 120
PLAN = """schema: hotlap.plan/1
moves:
  - {lever: zero-grad-none, setting: {}, preserves: bits}
"""


def page(name: str) -> str:
    return (HOW_TO / f"{name}.md").read_text(encoding="utf-8")


def script(text: str) -> str:
    """The page's training: its block of Python that goes backward, without a notebook's first line."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return next(block for block in blocks if "backward" in block or "Trainer" in block).removeprefix(
        "%%writefile train.py\n"
    )


def commands(text: str, start: str) -> list[list[str]]:
    """Commands of the page that begin so, each as what follows ``--``."""
    lines = [
        line.lstrip("!") for block in re.findall(r"```\w+\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
    ]
    return [shlex.split(line.partition(" -- ")[2]) for line in lines if line.startswith(start) and " -- " in line]


def call(folder: Path, words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    """``hotlap`` with these words, in the folder, where one thread computes."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    env |= {"PATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", **more}
    command = [sys.executable, "-m", "hotlap", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.mark.flaky(reruns=2)  # stacks of a short run, beside other tests
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "needs"),
    [
        pytest.param("torchrun", (), marks=pytest.mark.cousin),
        pytest.param("kaggle-colab", (), marks=pytest.mark.cousin),
        pytest.param("accelerate", ("accelerate",), marks=pytest.mark.slow),
        pytest.param("lightning", ("lightning",), marks=pytest.mark.slow),
        pytest.param("hf-trainer", ("transformers", "accelerate"), marks=pytest.mark.slow),
    ],
)
def test_the_diagnosis_names_the_line_that_the_page_names(name: str, needs: tuple[str, ...], tmp_path: Path) -> None:
    if lacking := [module for module in needs if importlib.util.find_spec(module) is None]:
        pytest.skip(f"{', '.join(lacking)} not installed: the extra `frameworks`")
    text = page(name)
    train = script(text)
    (tmp_path / "train.py").write_text(train)
    command = commands(text, "hotlap diagnose")[-1]
    done = call(tmp_path, ["diagnose", "--no-confirm", "--json", "found.json", "--", *command])
    assert done.returncode == 0, done.stderr
    line = next(number for number, row in enumerate(train.splitlines(), 1) if SLOW_LINE in row)
    first = json.loads((tmp_path / "found.json").read_text())["findings"][0]
    places = {(Path(where["file"]).name, where["line"]) for where in first["where"]}
    assert ("train.py", line) in places, first
    assert f"names `train.py:{line}`" in text


@pytest.mark.timeout(180)
def test_two_tasks_of_a_slurm_job_each_run_the_plan(tmp_path: Path) -> None:
    """Tasks start at the same moment in the same folder, with Slurm's variables and a copy of ``hotlap run`` each."""
    (tmp_path / "fast.yaml").write_text(PLAN)
    train = script(page("kaggle-colab")).replace("zero_grad()", "zero_grad(set_to_none=False)")
    (tmp_path / "train.py").write_text(train + "    import os; print('task', os.environ['SLURM_PROCID'])\n")
    command = commands(page("slurm"), "srun hotlap run")[0]

    def task(number: int) -> subprocess.CompletedProcess[str]:
        return call(
            tmp_path, ["run", "--plan", "fast.yaml", "--", *command], SLURM_PROCID=str(number), SLURM_NTASKS="2"
        )

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(task, range(2)))
    for number, one in enumerate(done):
        assert one.returncode == 0, one.stderr
        assert one.stdout == f"task {number}\n"
        assert "the plan's move was applied over 120 steps." in one.stderr
    assert len(list(tmp_path.glob(".hotlap/*/run.json"))) == 2

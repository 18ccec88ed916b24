"""``%%hotlap diagnose`` in a shell of IPython: it names cell and line, and leaves the process as it was.

One process runs all cells (torch's import would cost most); the tests read what it has noted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.records.cells import cell_name, is_cell, line_words, with_lines_in_words

pytest.importorskip("IPython")
PAGE = (Path(__file__).parents[2] / "docs/how-to/notebooks.md").read_text()
LOAD, DATA, TRAIN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

SESSION = """
import contextlib, gc, io, json, logging, os, signal, sys, builtins
from IPython.core.interactiveshell import InteractiveShell
import torch, torch._dynamo, torch.distributed, torch.utils.data

shell = InteractiveShell()
torch.optim.SGD([torch.zeros(1)])  # torch itself wraps the step of a class at its first instance
OWNERS = [torch, torch.nn.Module, torch.Tensor, torch.autograd, torch.cuda, torch.serialization, torch.optim.Optimizer,
          torch.utils.data.DataLoader, torch.utils.data._utils.worker, torch.utils.data._utils.fetch,
          torch.utils.data.dataloader._BaseDataLoaderIter, torch.utils.data.dataloader._SingleProcessDataLoaderIter,
          torch.optim.SGD, torch.amp.GradScaler, torch.distributed, builtins, os, gc, signal, logging.Logger]

def state():
    from hotlap.inject import on_import
    hooks = sys.modules["torch.optim.optimizer"]
    return {
        "attributes": {f"{o.__name__}.{n}": id(v) for o in OWNERS for n, v in list(vars(o).items())
                       if callable(v) and not n.startswith("_abc")},
        "hooks": [len(hooks._global_optimizer_pre_hooks), len(hooks._global_optimizer_post_hooks)],
        "collector": len(gc.callbacks), "finders": [str(f) for f in sys.meta_path],
        "alarm": str(signal.getsignal(signal.SIGALRM)), "timer": signal.getitimer(signal.ITIMER_REAL),
        "waiting": list(on_import._waiting), "trace": [str(sys.gettrace()), str(sys.getprofile())],
    }

def run(cell):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        done = shell.run_cell(cell, store_history=True)
    error = done.error_in_exec or done.error_before_exec
    return {"out": out.getvalue(), "err": err.getvalue(), "error": error and f"{type(error).__name__}: {error}",
            "result": repr(done.result)}

cells = json.load(sys.stdin)
import hotlap.inject.on_import
noted = {"first": run(cells["load"]), "data": run(cells["data"])}
before, names = state(), set(shell.user_ns)
noted["train"] = run(cells["train"])
noted["names"] = sorted(n for n in set(shell.user_ns) - names if not n.startswith("_"))
noted["changed"] = {k: [v, state()[k]] for k, v in before.items() if state()[k] != v and k != "attributes"}
noted["attributes"] = [n for n, v in state()["attributes"].items() if before["attributes"].get(n) != v]
noted["again"] = run(cells["train"].rstrip() + "\\n'the end'\\n")
noted["fails"] = run(cells["train"].rstrip() + "\\nraise RuntimeError('of the cell')\\n")
noted["no_step"] = run("%%hotlap diagnose\\nx = 1\\n")
noted["speedup"] = run("%%hotlap speedup\\nx = 2\\n")
noted["other"] = run("%%hotlap diagnose --steps 3\\nx = 3\\n")
noted["syntax"] = run("%%hotlap diagnose\\nx = (\\n")
os.environ["HOTLAP_CALL"] = "somewhere"
noted["watched"] = run("%%hotlap diagnose\\nx = 4\\n")
del os.environ["HOTLAP_CALL"]
noted["x"] = shell.user_ns["x"]
noted["left"] = [n for n, v in state()["attributes"].items() if before["attributes"].get(n) != v]
noted["left"] += [k for k, v in before.items() if state()[k] != v and k != "attributes"]
sys.__stdout__.write(json.dumps(noted))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the cells of the how-to page, and some others, printed and left."""
    folder = tmp_path_factory.mktemp("notebook")
    env = {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    given = json.dumps({"load": LOAD, "data": DATA, "train": TRAIN})
    done = subprocess.run(
        [sys.executable, "-c", SESSION], input=given, cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    noted: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    noted["runs"] = sorted(path.parent.name for path in folder.glob(".hotlap/*/report.html"))
    noted["findings"] = json.loads(next(iter(sorted(folder.glob(".hotlap/*/findings.json")))).read_text())
    return noted


def line_of(cell: str, text: str) -> int:
    return next(number for number, line in enumerate(cell.splitlines(), 1) if text in line)


def test_the_page_names_the_line_that_the_diagnosis_names(session: dict[str, Any]) -> None:
    told = f"cell In[2], line {line_of(DATA, 'float(word)')}"
    assert session["first"]["error"] is None and session["data"]["error"] is None
    assert session["train"]["error"] is None, session["train"]
    assert told in " ".join(session["train"]["out"].split()), session["train"]["out"]
    assert told in PAGE


def test_lines_of_the_diagnosed_cell_itself_count_the_magic(session: dict[str, Any]) -> None:
    loader = json.dumps(session["findings"])
    stacks = set(re.findall(r"cell In\[3\], line (\d+)", loader))
    assert str(line_of(TRAIN, "in loader")) in stacks, stacks
    assert "1" not in stacks, "the call of the magic is no part of the training"
    where = [w for f in session["findings"]["findings"] for w in f["where"] if w["file"] == "cell In[3]"]
    assert all(w["text"] == TRAIN.splitlines()[w["line"] - 1].strip() for w in where)


def test_nothing_is_left_of_the_probes(session: dict[str, Any]) -> None:
    assert session["changed"] == {}
    assert session["attributes"] == []
    assert session["left"] == []


def test_the_users_names_are_those_of_the_cell(session: dict[str, Any]) -> None:
    assert session["names"] == ["epoch", "labels", "loss", "model", "optimizer", "values"]


def test_the_value_of_the_last_line_is_shown_and_the_second_run_is_diagnosed_too(session: dict[str, Any]) -> None:
    assert session["again"]["result"] == "'the end'"
    assert "cell In[2], line" in session["again"]["out"]


def test_an_error_of_the_cell_comes_through_after_the_diagnosis(session: dict[str, Any]) -> None:
    failed = session["fails"]
    assert failed["error"] == "RuntimeError: of the cell"
    assert "cell In[2], line" in failed["out"]
    assert "magic.py" not in failed["out"] + failed["err"] and "cell_code.py" not in failed["out"] + failed["err"]


def test_a_cell_without_a_step_is_an_error_that_says_so(session: dict[str, Any]) -> None:
    assert session["no_step"]["error"].startswith("UsageError: hotlap: Nothing to diagnose: no optimizer step")
    assert "cell In[" in session["no_step"]["error"]


def test_what_a_notebook_cannot_do_is_refused_with_what_to_do_instead(session: dict[str, Any]) -> None:
    assert "hotlap speedup -- python" in session["speedup"]["error"] and "UsageError" in session["speedup"]["error"]
    assert "takes no options" in session["other"]["error"]
    assert "watched already" in session["watched"]["error"]
    assert session["x"] == 1, "a refused cell does not run"


def test_a_cell_that_does_not_parse_is_a_syntax_error(session: dict[str, Any]) -> None:
    assert session["syntax"]["error"].startswith("SyntaxError")


def test_each_diagnosed_cell_has_a_report(session: dict[str, Any]) -> None:
    assert len(session["runs"]) == 3


@pytest.mark.parametrize(("number", "line", "told"), [(3, 12, "cell In[3], line 12"), (3, 0, "cell In[3]")])
def test_places_in_cells_are_told_in_words(number: int, line: int, told: str) -> None:
    assert cell_name(number) + line_words(cell_name(number), line) == told


def test_files_keep_their_colon() -> None:
    assert "train.py" + line_words("train.py", 48) == "train.py:48"
    assert with_lines_in_words("at train.py:48 and cell In[3]:12.") == "at train.py:48 and cell In[3], line 12."
    assert is_cell("cell In[3]") and not is_cell("cell.py")

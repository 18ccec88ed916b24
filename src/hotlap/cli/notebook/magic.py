"""``%%hotlap diagnose``: watch one cell of the running process, and say what makes its training slow.

The probes are put in before the cell and taken out after it, however it ends; nothing is put into the user's namespace.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from hotlap.cli.notebook.cell_code import CellCode, cell_number, cell_texts, compile_cell
from hotlap.cli.prepare import new_record
from hotlap.cli.show import publish
from hotlap.diagnose.diagnose import diagnose
from hotlap.inject.guest import Guest, attach_call, is_attached
from hotlap.machine.facts import read_machine
from hotlap.records.call import ENV, Call
from hotlap.records.cells import cell_name, with_lines_in_words
from hotlap.records.codec import dumps, loads
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.findings import Findings
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import training_timeline
from hotlap.report.view import Report
from hotlap.trial.collect import annotate

__all__ = ["register"]

NAME = "hotlap"
NO_SPEEDUP = HotlapError(
    "%%hotlap speedup cannot be done in a notebook: a lever is tried by starting the training anew, many times and in "
    "a sandbox, and what a kernel holds cannot be started anew.",
    "Save the training as a script (jupyter nbconvert --to script), run `hotlap speedup -- python SCRIPT`, and put "
    '`import hotlap; hotlap.attach("fast.yaml")` into the first cell.',
    EXIT_USAGE,
)


def register(shell: Any) -> None:
    """Give the shell its cell magic ``%%hotlap``."""
    from IPython.core.error import UsageError
    from IPython.core.magic import output_can_be_silenced

    def magic(line: str, cell: str) -> Any:
        """%%hotlap diagnose: run the cell, and show where its training's time goes and which line costs it."""
        __tracebackhide__ = True
        try:
            return _command(shell, line, cell)
        except HotlapError as err:
            raise UsageError(f"hotlap: {err.what}\n        {err.hint}".rstrip()) from None

    shell.register_magic_function(output_can_be_silenced(magic), "cell", NAME)


def _command(shell: Any, line: str, cell: str) -> Any:
    __tracebackhide__ = True
    words = line.split()
    if words[:1] == ["speedup"]:
        raise NO_SPEEDUP
    if words != ["diagnose"]:
        raise HotlapError(
            f"%%hotlap {line.strip()}: a cell knows %%hotlap diagnose, which takes no options.",
            "Everything else is on the command line: hotlap --help",
            EXIT_USAGE,
        )
    if ENV in os.environ or is_attached():
        raise HotlapError(
            "This process is watched already, by hotlap.attach() or by a `hotlap` command above it.",
            "Restart the kernel without it to diagnose a cell.",
        )
    return _diagnose(shell, compile_cell(shell, line.strip(), cell), cell_name(cell_number(shell)))


def _diagnose(shell: Any, code: CellCode, name: str) -> Any:
    """Run the cell watched, then report. What the cell itself raises comes through, after the report."""
    __tracebackhide__ = True
    import torch  # noqa: F401 - the probes need it imported, as the cell will

    folder = RunFolder.create(name.removeprefix("cell "))
    run = new_record("diagnose", ["%%hotlap diagnose", name])
    folder.write("run.json", run)
    timeline_dir = folder.timeline_dir("run")
    began = time.monotonic()
    guest = attach_call(Call(str(timeline_dir), mode="watch", cores=os.cpu_count() or 1))
    guest.watch.recorder.frames.base = CellCode.run.__code__  # what called the cell is no part of its training
    try:
        value = code.run(shell)
    except BaseException:
        run.status, run.exit_code = "finished", 1  # the watching did not fail
        _leave(guest)
        try:
            _report(shell, folder, run, name, began)
        except HotlapError as err:  # the cell's own error is the one to raise
            print(f"hotlap: {err}", file=sys.stderr)
        raise
    _leave(guest)
    run.status, run.exit_code = "finished", 0
    _report(shell, folder, run, name, began)
    return value


def _leave(guest: Guest) -> None:
    """Take the probes out."""
    for problem in guest.leave():
        print(f"hotlap: left in this process: {problem}; restart the kernel to be rid of it.", file=sys.stderr)


def _report(shell: Any, folder: RunFolder, run: RunRecord, name: str, began: float) -> None:
    """Diagnose the timeline and print the report. HotlapError when there is nothing to diagnose."""
    run.wall_s = time.monotonic() - began
    folder.write("run.json", run)
    timeline_dir = folder.path / "timelines" / "run"
    cells = cell_texts(shell)
    for file in timeline_dir.glob("*.jsonl"):
        text = file.read_text(encoding="utf-8")
        for code_name, (cell, _) in cells.items():
            text = text.replace(code_name, cell)
        file.write_text(text, encoding="utf-8")
    timeline = training_timeline(timeline_dir)
    if timeline is None:
        raise HotlapError(
            f"Nothing to diagnose: no optimizer step was seen in {name}.",
            "The cell has to train: call the training loop in it (optimizer.step()), not only define it.",
        )
    machine = read_machine()
    found = diagnose(annotate(timeline, dict(cells.values())), machine, name)
    findings = loads(Findings, with_lines_in_words(dumps(found)))
    folder.write("machine.json", machine)
    folder.write("findings.json", findings)
    report = Report(
        machine=machine,
        findings=findings,
        command=run.command,
        run_path=str(folder.path),
        wall_s=run.wall_s,
        notes=["Causes are observed, not confirmed: what a kernel holds cannot be started anew without them."],
        status=run.status,
        kind="diagnose",
    )
    publish(report, folder, None, stderr=False)

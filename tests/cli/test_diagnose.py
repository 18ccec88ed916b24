"""``hotlap diagnose``: what it leaves in the run's folder, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotlap.cli.commands import diagnose
from hotlap.cli.main import main
from hotlap.records.machine import Machine
from hotlap.records.run_folder import RunFolder
from hotlap.testing.timelines import cpu_machine


def test_the_machine_is_known_while_the_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Machine | None] = []

    def watch(command: list[str], folder: RunFolder) -> Any:
        seen.append(folder.read("machine.json", Machine))
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnose, "_watch", watch)
    monkeypatch.setattr(diagnose, "read_machine", lambda sandbox: cpu_machine())
    (tmp_path / "train.py").write_text("")
    main(["diagnose", "--no-confirm", "--", "python", "train.py"])
    assert seen == [cpu_machine()]


@pytest.mark.parametrize(("code", "told"), [(3, "exited with 3, and no training step"), (0, "could not attach to")])
def test_the_scripts_own_crash_comes_before_what_was_shut_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, told: str
) -> None:
    def watch(command: list[str], folder: RunFolder) -> Any:
        (folder.timeline_dir("run") / "call.json.7.error").write_text("`python helper.py` was shut out\n")
        return code, []

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnose, "_watch", watch)
    monkeypatch.setattr(diagnose, "read_machine", lambda sandbox: cpu_machine())
    (tmp_path / "train.py").write_text("")
    main(["diagnose", "--no-confirm", "--", "python", "train.py"])
    first, *rest = capsys.readouterr().err.strip().splitlines()[-2:]
    assert told in first
    assert "`python helper.py` was shut out" in " ".join([first, *rest])

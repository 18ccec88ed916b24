"""`hotlap patch`: from a run and its plan to a script that runs without Hotlap, with the same settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.cli.patching import plan_and_run, script_path, wanted_edits
from hotlap.machine.facts import read_machine
from hotlap.plan.file import dump_plan
from hotlap.records.codec import encode
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Finding, Where
from hotlap.records.plan import Move, Plan
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.testing.lever_kit import findings_of, machine_of

pytest.importorskip("libcst")
EXAMPLE = Path(__file__).parents[2] / "examples" / "speaker"
BITS = [Move("cache-decode", {"max_bytes": 1 << 30}, "bits")]
ALL = [
    *BITS,
    Move("autocast", {"dtype": "bf16"}, "maths"),
    Move("channels-last", {}, "maths"),
    Move("loader-workers", {"workers": 1, "prefetch": 4, "torch_threads": 1}, "distribution"),
]
CAUSES = {
    "decode": 'audio, rate = sf.read(path, dtype="float32")',
    "precision": "loss = head(model(wave), label)",
    "memory-format": "loss = head(model(wave), label)",
    "too-few-workers": "loader = DataLoader(train_set,",
}


@pytest.fixture
def speaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example in a folder of its own, under git, with a run whose findings are at the example's lines."""
    shutil.copy(EXAMPLE / "train.py", tmp_path)
    (tmp_path / "data").symlink_to(EXAMPLE / "data")
    (tmp_path / ".gitignore").write_text(".hotlap\nfast.yaml\nout\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(folder: Path, moves: list[Move]) -> RunFolder:
    """A run of the example that kept ``moves``, and its plan as fast.yaml."""
    lines = (folder / "train.py").read_text().splitlines()
    found = []
    for share, (cause, text) in enumerate(CAUSES.items(), 1):
        line = next(n for n, code in enumerate(lines, 1) if text in code)
        where = Where(str(folder / "train.py"), line, "main", lines[line - 1].strip())
        found.append(Finding(cause, 0.1, 0.01 / share, False, [where], ""))
    run = RunFolder.create("train.py", folder / ".hotlap")
    loader = next(f.where[0] for f in found if f.cause == "too-few-workers")
    findings = findings_of(where=loader)
    run.write("findings.json", {**encode(findings), "findings": encode(found)})
    run.write("plan.json", Plan(moves, script="train.py"))
    run.write("run.json", RunRecord("speedup", ["python", "train.py"], "now"))
    (folder / "fast.yaml").write_text(dump_plan(Plan(moves, script="train.py")))
    return run


def losses(folder: Path, *before: str) -> list[str]:
    script = ["train.py", "--steps", "3", "--batch-size", "4", "--val-every", "99", "--out", str(folder / "out")]
    source = str(Path(__file__).parents[2] / "src")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": source if before else ""}
    command = [*before, sys.executable, *script]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    return re.findall(r"loss (\d+\.\d+)", done.stdout)


def test_a_diff_is_printed_and_nothing_changed(speaker: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run = keep(speaker, ALL)
    before = (speaker / "train.py").read_bytes()
    assert main(["patch", "fast.yaml"]) == 0
    out = capfdbinary.readouterr().out
    assert out == (run.path / "patch.diff").read_bytes() and out.startswith(b"--- a/train.py\n+++ b/train.py\n")
    assert (speaker / "train.py").read_bytes() == before
    subprocess.run(["git", "apply", "--check", "-"], input=out, cwd=speaker, check=True)


def test_a_second_patch_changes_nothing(speaker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(speaker, ALL)
    assert main(["patch", "fast.yaml", "--write"]) == 0
    after = (speaker / "train.py").read_bytes()
    assert b"hotlap" not in after
    assert main(["patch", "fast.yaml", "--write"]) == 0
    assert (speaker / "train.py").read_bytes() == after
    assert "has this patch already" in capsys.readouterr().err


def test_a_file_left_to_a_person_makes_no_later_patch_fail(speaker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = keep(speaker, ALL)
    other = speaker / "readers.py"
    other.write_text("audio = mine(path)\n")
    findings = json.loads((run.path / "findings.json").read_text())
    findings["findings"][0]["where"] = [{"file": str(other), "line": 1, "function": "", "text": "audio = mine(path)"}]
    run.write("findings.json", findings)
    for _ in range(3):
        assert main(["patch", "fast.yaml", "--write"]) == 0
    told = capsys.readouterr().err
    assert told.count("train.py changed") == 1 and told.count("train.py has this patch already") == 2
    assert told.count("no call of a well-known reader") == 3


def test_unsaved_work_and_moved_code_are_refused(speaker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(speaker, ALL)
    script = speaker / "train.py"
    script.write_text(script.read_text() + "# mine\n")
    assert main(["patch", "fast.yaml", "--write"]) == 1
    assert "not committed" in capsys.readouterr().err and script.read_text().endswith("# mine\n")
    assert main(["patch", "fast.yaml", "--write", "--force"]) == 0
    script.write_text("# one more line\n" + (EXAMPLE / "train.py").read_text())
    assert main(["patch", "fast.yaml"]) == 1
    assert re.search(r"train\.py:\d+: the line is .* found when it was", capsys.readouterr().err)


def test_a_move_may_be_deleted_from_the_plan(speaker: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    keep(speaker, ALL)
    (speaker / "fast.yaml").write_text(dump_plan(Plan(ALL[1:], script="python train.py")))
    assert main(["patch", "fast.yaml"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"--- a/train.py\n")


def test_a_plan_without_a_run_says_what_to_do(speaker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (speaker / "fast.yaml").write_text(dump_plan(Plan(ALL, script="train.py")))
    assert main(["patch", "fast.yaml"]) == 2
    assert "hotlap diagnose" in capsys.readouterr().err


def test_a_plan_that_is_not_there_is_named(speaker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patch", "nowhere.yaml"]) == 2
    assert "There is no plan nowhere.yaml" in capsys.readouterr().err


def test_attach_adds_one_line(speaker: Path) -> None:
    keep(speaker, ALL)
    assert main(["patch", "fast.yaml", "--attach", "--write"]) == 0
    before, after = (EXAMPLE / "train.py").read_text(), (speaker / "train.py").read_text()
    line = 'import hotlap; hotlap.attach("fast.yaml")\n'
    assert after.count(line) == 1 and after.replace(line, "") == before


@pytest.mark.parametrize("options", [[], ["--attach"], ["--write"]])
def test_a_run_folder_that_cannot_be_written_is_told(
    speaker: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = keep(speaker, ALL)
    (run.path / "patch.diff").mkdir()  # root may write into a folder that is read-only, yet not over a folder
    assert main(["patch", "fast.yaml", *options]) == 0
    out, err = capsys.readouterr()
    assert "keeps no copy of this patch" in err and "patch.diff" in err
    assert ("train.py changed" in err) if "--write" in options else out.startswith("--- a/train.py\n")


def test_a_record_that_cannot_be_written_is_told(
    speaker: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = keep(speaker, ALL)
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if target.name == "patch.json":
            raise OSError(30, "Read-only file system", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    assert main(["patch", "fast.yaml"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("--- a/train.py\n")
    assert f"keeps no copy of this patch: Cannot write .hotlap/{run.path.name}/patch.json: Read-only" in err


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_patched_script_trains_as_the_plan_does(speaker: Path) -> None:
    pytest.importorskip("soundfile")
    has_bf16 = read_machine(import_torch=True).fast_bf16
    keep(speaker, ALL if has_bf16 else [move for move in ALL if move.lever != "autocast"])
    bare = losses(speaker)
    by_plan = losses(speaker, sys.executable, "-m", "hotlap", "run", "--plan", "fast.yaml", "--")
    assert main(["patch", "fast.yaml", "--write"]) == 0
    assert losses(speaker) == by_plan and (by_plan != bare or not has_bf16)
    assert (
        json.loads(next((speaker / ".hotlap").glob("*/patch.json")).read_text())["moves"][0]["lever"] == "cache-decode"
    )
    shutil.copy(EXAMPLE / "train.py", speaker)
    (speaker / "fast.yaml").write_text(dump_plan(Plan(BITS, script="train.py")))
    assert main(["patch", "fast.yaml", "--write"]) == 0
    assert losses(speaker) == bare and len(bare) == 3, "bits that are preserved are equal"


@pytest.mark.parametrize("command", [["python", "train.py"], ["torchrun", "-m", "train"]])
def test_what_the_script_does_with_the_files_of_another_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "utils.py").write_text("import torch\ndef save(m):\n    torch.save(m, 'best.pt')\n")
    (tmp_path / "train.py").write_text("import torch, utils\nutils.save(model)\nstate = torch.load('best.pt')\n")
    moves = [Move("checkpoint-async", {"pending": 1}, "bits")]
    _ran(tmp_path, "20260101-000000-train", "train.py", moves)
    run = RunFolder(tmp_path / ".hotlap" / "20260101-000000-train")
    run.write("run.json", RunRecord("speedup", command, "now"))
    where = Where(str(tmp_path / "utils.py"), 3, "save", "torch.save(m, 'best.pt')")
    found = encode([Finding("checkpoint-blocking", 0.1, 0.01, False, [where], "")])
    run.write("findings.json", {**encode(findings_of()), "findings": found})
    assert main(["patch", run.path.name]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "torch.load (train.py:3) may look for the file" in err
    (tmp_path / "train.py").write_text("import utils\nutils.save(model)\n")
    assert main(["patch", run.path.name]) == 0
    assert "save_later(m, 'best.pt')" in capsys.readouterr().out


def _ran(root: Path, name: str, script: str, moves: list[Move], created: str = "") -> Plan:
    """A run of ``script``, and the plan that it wrote."""
    command = ["python", *script.split()]
    run = RunFolder(root / ".hotlap" / name)
    run.path.mkdir(parents=True)
    run.write("run.json", RunRecord("speedup", command, "now"))
    findings = encode(findings_of())
    run.write("findings.json", {**findings, "script": {**findings["script"], "name": script.removeprefix("-m ")}})
    plan = Plan(moves, script=" ".join(command), created=created)
    run.write("plan.json", plan)
    return plan


def test_a_plan_is_of_the_script_that_it_was_made_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = _ran(tmp_path, "20260101-000000-train", "a/train.py", ALL, "then")
    _ran(tmp_path, "20260102-000000-train", "b/train.py", ALL, "later")
    module = _ran(tmp_path, "20260103-000000-pkg", "-m pkg.train", ALL, "last")
    for plan, of in ((mine, "20260101"), (module, "20260103")):
        for edited in (plan, Plan(plan.moves[1:], script=plan.script)):
            Path("fast.yaml").write_text(dump_plan(edited))
            assert plan_and_run("fast.yaml", None)[1].path.name.startswith(of), "whatever has run since"
    Path("fast.yaml").write_text(dump_plan(Plan(ALL[1:], script="train.py")))
    with pytest.raises(HotlapError, match=r"may be of several scripts: python a/train\.py, python b/train\.py\."):
        plan_and_run("fast.yaml", None)


def test_a_setting_that_is_no_setting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _ran(tmp_path, "20260101-000000-train", "train.py", ALL)
    RunFolder(tmp_path / ".hotlap" / "20260101-000000-train").write("machine.json", machine_of())
    Path("fast.yaml").write_text(dump_plan(Plan([Move("loader-workers", {"workers": 4}, "bits")], script="train.py")))
    with pytest.raises(HotlapError, match=r"fast\.yaml:\d+"):
        plan_and_run("fast.yaml", None)


def test_without_a_name_the_newest_run_with_a_plan_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, kind in (("20260101-000000-a", "speedup"), ("20260102-000000-b", "run")):
        (tmp_path / ".hotlap" / name).mkdir(parents=True)
        RunFolder(tmp_path / ".hotlap" / name).write("run.json", RunRecord(kind, ["python", "-m", "pkg"], "now"))
    with pytest.raises(HotlapError, match=r"made a plan.* Name the plan \(`hotlap patch fast\.yaml`\)"):
        plan_and_run(None, None)
    kept = RunFolder(tmp_path / ".hotlap" / "20260101-000000-a")
    kept.write("plan.json", Plan([], script="train.py"))
    with pytest.raises(HotlapError, match=r"20260101-000000-a kept no move.* Name the plan"):
        plan_and_run(None, None)
    kept.write("plan.json", Plan(BITS, script="train.py"))
    plan, run = plan_and_run(None, None)
    assert plan.moves == BITS and run.path.name == "20260101-000000-a"
    with pytest.raises(HotlapError, match=r"`--attach` needs a command that names a \.py file"):
        script_path(run)
    with pytest.raises(HotlapError, match="again, then patch"):
        wanted_edits(plan, run)

"""Two runs made side by side: amounts, changes and what speaks against comparing them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from compare_runs_made import COMPUTE, ORIGIN, ran, side, timeline

from hotlap.compare.command_line import command_changes
from hotlap.compare.runs import compare_runs
from hotlap.compare.side import Side
from hotlap.records.codec import dumps, loads
from hotlap.records.comparison import Comparison
from hotlap.records.findings import Drift
from hotlap.records.machine import Accelerator
from hotlap.records.plan import Move, Plan
from hotlap.testing.timelines import TimelineBuilder, cpu_machine


def changes(a: Side, b: Side, group: str | None = None) -> dict[str, tuple[Any, Any]]:
    return {c.what: (c.a, c.b) for c in compare_runs(a, b).changes if group in (None, c.group)}


def kinds(a: Side, b: Side) -> list[str]:
    return [warning.kind for warning in compare_runs(a, b).warnings]


def test_the_phase_and_the_cause_that_grew_come_first() -> None:
    found = compare_runs(side(timeline()), side(timeline(load_s=0.02), "b"))
    assert found.step is not None and found.step.clear
    assert found.step.change_s == pytest.approx(0.0198, rel=0.02) and found.step.ratio == pytest.approx(1.96, rel=0.02)
    first = found.phases[0]
    assert (first.name, first.clear) == ("data_wait", True) and first.change_s == pytest.approx(0.0198, rel=0.02)
    assert sum(p.change_s or 0.0 for p in found.phases) == pytest.approx(found.step.change_s, rel=0.01)
    assert not any(phase.clear for phase in found.phases[1:])
    costs = [cause for cause in found.causes if cause.clear]
    assert costs and all(cause.a_s is None and cause.change_s == cause.b_s for cause in costs)
    slow = next(cause for cause in costs if cause.where is not None and cause.where.line == 56)
    assert slow.where is not None and slow.where.file == "train.py"
    back = compare_runs(side(timeline(load_s=0.02)), side(timeline(), "b"))
    assert back.phases[0].change_s == pytest.approx(-(first.change_s or 0.0)) and back.causes[0].b_s is None


def test_a_run_against_its_like_shows_no_difference_and_no_change() -> None:
    found = compare_runs(side(timeline()), side(timeline(load_s=0.0003), "b"))
    assert found.step is not None and not found.step.clear and not any(p.clear for p in found.phases)
    assert found.changes == [] and found.warnings == [] and found.notes == []


def test_a_change_within_the_scatter_of_the_runs_is_not_clear() -> None:
    def wavering(extra: float) -> TimelineBuilder:
        made = timeline(20)
        for block in range(9):
            made.steps(20, **{**COMPUTE, "forward": 0.010 + extra + 0.012 * (block % 3), "data_wait": 0.0002})
        return made

    found = compare_runs(side(wavering(0.0)), side(wavering(0.002), "b"))
    forward = next(p for p in found.phases if p.name == "forward")
    assert forward.scatter_s is not None and forward.scatter_s > (forward.change_s or 0.0) > 0.0015
    assert not forward.clear
    steady = compare_runs(side(timeline()), side(timeline(forward=0.012), "b"))
    assert next(p for p in steady.phases if p.name == "forward").clear


def test_a_cause_is_as_uncertain_as_its_phase_and_unknown_without_stacks() -> None:
    def wavering(wait: float) -> TimelineBuilder:
        made = timeline(20, load_s=wait)
        for block in range(9):
            made.steps(20, **{**COMPUTE, "data_wait": wait + 0.02 * (block % 3)})
        return made

    near = compare_runs(side(wavering(0.010)), side(wavering(0.013), "b"))
    assert near.causes and not any(cause.clear for cause in near.causes)
    slow = side(timeline(load_s=0.02))
    fast = compare_runs(slow, replace(side(timeline(), "b"), stacks=False))
    assert fast.causes and all(cause.change_s is None and not cause.clear for cause in fast.causes)
    found = compare_runs(replace(side(timeline()), stacks=False), replace(slow, path="b", stacks=False))
    assert any(cause.clear for cause in found.causes), "both without: what both can see compares"


def test_a_phase_that_one_run_did_not_measure_has_no_change() -> None:
    found = compare_runs(side(timeline(optimizer=None)), side(timeline(), "b"))
    optimizer = next(p for p in found.phases if p.name == "optimizer")
    assert (optimizer.a_s, optimizer.change_s, optimizer.ratio) == (None, None, None) and not optimizer.clear


@pytest.mark.parametrize(
    ("kind", "words", "b"),
    [
        ("script", "train.py and other.py", lambda s: replace(s, findings=named(s, "src/other.py"))),
        ("script", "Net with 1,000 parameters and Big", lambda s: replace(s, findings=modelled(s, "Big"))),
        ("machine", "Synthetic CPU, 2 cores, and Synthetic CPU, 8 cores", lambda s: replace(s, machine=cpu_machine(8))),
        ("machine", "H200", lambda s: replace(s, machine=cpu_machine(accelerators=[H200]))),
        ("machine", "not known", lambda s: replace(s, machine=None)),
        ("torch", "2.13.0 and 2.9.1", lambda s: replace(s, torch="2.9.1")),
        ("batch", "32 and 64 samples", lambda s: side(timeline(batch=64), "b")),
        ("ranks", "1 and 4", lambda s: replace(s, findings=ranked(s, 4))),
        ("steps", "Few steady steps (29 of B)", lambda s: side(timeline(30), "b")),
        ("trial", "B was watched in a trial", lambda s: replace(s, in_trial=True)),
        ("status", "B was interrupted", lambda s: ran(s, status="interrupted")),
        ("status", "B failed", lambda s: ran(s, status="failed")),
        ("status", "exit code 3", lambda s: ran(s, exit_code=3)),
        ("stacks", "B has no stack samples", lambda s: replace(s, stacks=False)),
        ("drift", "in B", lambda s: replace(s, findings=drifted(s))),
        ("same-run", "one and the same", lambda s: replace(s, path="/home/u/.hotlap/a")),
    ],
)
def test_what_does_not_compare_is_said(kind: str, words: str, b: Any) -> None:
    a, other = side(timeline()), b(side(timeline(), "b"))
    told = {warning.kind: warning.text for warning in compare_runs(a, other).warnings}
    assert words in told[kind] and len(told) == 1
    assert kind in kinds(other, a), "the other way round, too"


H200 = Accelerator("H200", 2**30, "9.0", True, True, True, True)


def named(s: Side, name: str) -> Any:
    return replace(s.findings, script=replace(s.findings.script, name=name))


def modelled(s: Side, name: str) -> Any:
    return replace(s.findings, script=replace(s.findings.script, model={"class": name, "parameters": 5}))


def ranked(s: Side, world: int) -> Any:
    return replace(s.findings, script=replace(s.findings.script, world_size=world))


def drifted(s: Side) -> Any:
    return replace(s.findings, drift=Drift(100, 0.02, 0.04, "data_wait", False))


def test_a_last_batch_that_is_not_full_is_no_other_batch() -> None:
    a = side(timeline())
    b = replace(a, path="b", findings=replace(a.findings, throughput=replace(a.findings.throughput, batch=31.9)))
    assert compare_runs(a, b).warnings == [] and compare_runs(a, b).changes == []


def test_settings_levers_machine_and_variables() -> None:
    a = side(timeline())
    b = side(timeline(batch=64, workers=2).setting("threads", torch=1, interop=1), "b", cpu_machine(4))
    applied = [Move("optimizer-fused", {"fused": True}, "maths")]
    b = ran(b, origin=replace(ORIGIN, moves=applied, variables={"OMP_NUM_THREADS": "1"}))
    found = changes(a, b)
    assert found["samples_per_step"] == (32.0, 64.0) and found["loader_num_workers"] == (0, 2)
    assert found["threads_torch"] == (2, 1) and "threads_interop" not in found
    assert found["cores"] == (2, 4) and "cpu" not in found
    assert found["optimizer-fused"] == (None, {"fused": True})
    assert found["OMP_NUM_THREADS"] == (None, "1")


def test_what_one_run_did_not_see_is_no_change() -> None:
    a = side(timeline())
    gone = replace(side(timeline(), "b"), settings={}, hotlap=None, python=None, torch=None)
    assert changes(a, gone) == {}
    bare = TimelineBuilder().steps(200, **COMPUTE)
    assert changes(a, side(bare, "b"))["loader"] == ("Clips", None)


def test_code_by_commit_and_text() -> None:
    a = side(timeline())
    later = replace(ORIGIN, commit="b" * 40, branch="fix", changed=["data.py"], texts={"train.py": "2" * 12})
    b = ran(side(timeline(), "b"), origin=later)
    found = changes(a, b, "code")
    assert found["commit"] == ("a" * 40, "b" * 40) and found["branch"] == ("main", "fix")
    assert found["train.py"] == ("as committed 111111111111", "as committed 222222222222")
    assert found["data.py"] == ("as committed", "not committed")
    assert any("git -C /home/u diff aaaaaaaaaa bbbbbbbbbb" in note for note in compare_runs(a, b).notes)
    spaced = ran(b, origin=replace(later, repository="/home/u/my work"))
    assert any("git -C '/home/u/my work' diff aaaaaaaaaa" in note for note in compare_runs(a, spaced).notes)
    same_text = replace(ORIGIN, changed=["train.py"])
    assert changes(a, ran(a, origin=same_text), "code") == {}, "the text is the same, whatever git calls it"
    loose = replace(ORIGIN, tracked=False)
    found = changes(ran(a, origin=loose), ran(a, origin=replace(loose, texts={"train.py": "3" * 12})), "code")
    assert found == {"train.py": ("text 111111111111", "text 333333333333")}, "no commit has an untracked script"
    moved = replace(ORIGIN, script="/srv/x/train.py", repository="/srv/x")
    assert changes(a, ran(a, origin=moved), "code") == {}, "another clone of the same commit"


def test_code_without_git_or_without_a_record() -> None:
    bare = replace(ORIGIN, repository=None, commit=None, branch=None, changed=None)
    a, b = ran(side(timeline()), origin=bare), ran(side(timeline(), "b"), origin=replace(bare, texts={"new.py": "3"}))
    assert changes(a, b, "code") == {
        "train.py": ("text 111111111111", "not there"),
        "new.py": ("not there", "text 3"),
    }
    assert "No git repository" in compare_runs(a, b).notes[0]
    unknown = ran(b, origin=replace(ORIGIN, changed=None, texts={}))
    assert changes(side(timeline()), unknown, "code") == {}, "what is not known is no change"
    old = compare_runs(side(timeline()), ran(b, origin=None))
    assert "B recorded none of it" in old.notes[0] and old.changes == []


def test_packages_torch_first() -> None:
    b = replace(ORIGIN, packages={"aaa": "1", "torch": "2.14.0"})
    found = changes(side(timeline()), ran(side(timeline(), "b"), origin=b), "packages")
    assert list(found.items()) == [("torch", ("2.13.0", "2.14.0")), ("numpy", ("2.1", None)), ("aaa", (None, "1"))]
    none = ran(side(timeline(), "b"), origin=replace(ORIGIN, packages=None))
    assert changes(side(timeline()), none, "packages") == {}
    assert "packages of its Python were not found" in compare_runs(side(timeline()), none).notes[0]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("train.py --batch 32", "train.py --batch 64", [("--batch", "--batch 32", "--batch 64")]),
        ("train.py", "train.py --workers=2 -v", [("--workers", None, "--workers=2"), ("-v", None, "-v")]),
        ("train.py a b", "train.py --c", [("--c", "a b", "--c")]),
        ("-m pkg.train x", "-m pkg.train y", [("words", "x", "y")]),
        ("train.py --a 1 --b 2", "train.py --b 2", [("--a", "--a 1", None)]),
        ("train.py 'my data'", "train.py clips", [("words", "'my data'", "clips")]),
        ("train.py --x", "train.py --x", []),
    ],
)
def test_words_of_the_command_that_differ(a: str, b: str, expected: list[tuple[str, str, str]]) -> None:
    found = command_changes(["python", *shlex.split(a)], ["python", *shlex.split(b)])
    assert [(c.what, c.a, c.b) for c in found] == expected


def test_plans_of_two_runs_and_the_document_comes_back() -> None:
    a = side(timeline(), plan=Plan([Move("tf32", {}, "maths", 1.2)], speedup=1.2, low=1.1, high=1.3))
    found = compare_runs(a, side(timeline(load_s=0.02), "b"))
    assert [(m.lever, m.state) for m in found.moves] == [("tf32", "only a")] and found.a.speedup == 1.2
    assert loads(Comparison, dumps(found)) == found


@pytest.mark.parametrize(("hosts", "told"), [(("aa", "bb"), 1), (("aa", "aa"), 0), ((None, "bb"), 0)])
def test_another_machine_of_the_same_kind_is_told_where_both_hosts_are_recorded(
    hosts: tuple[str | None, str], told: int
) -> None:
    a, b = (side(timeline(), name, cpu_machine(host=host)) for name, host in zip("ab", hosts, strict=True))
    warned = [w.text for w in compare_runs(a, b).warnings if w.kind == "machine"]
    assert len(warned) == told and all("of the same kind" in text for text in warned)


def test_the_same_gpu_beside_another_processor_is_another_machine() -> None:
    """Data are loaded by the processor."""
    gpu = [Accelerator("A100", 80 << 30, "8.0", True, True, True, True)]
    a, b = (replace(cpu_machine(16), cpu=name, accelerators=gpu) for name in ("Xeon", "EPYC"))
    warned = compare_runs(side(timeline(), "a", a), side(timeline(), "b", b)).warnings
    assert [w.kind for w in warned] == ["machine"] and "Xeon" in warned[0].text and "EPYC" in warned[0].text

"""The document as a whole: too few steps, order, confirming, the roof, and odd timelines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnose_scripts import COMPUTE, LOADER, healthy, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.diagnose.confirm import with_ablation
from hotlap.diagnose.diagnose import diagnose
from hotlap.diagnose.order import in_order
from hotlap.diagnose.policy import DEFAULT
from hotlap.diagnose.registry import all_causes
from hotlap.diagnose.roofline import with_roof
from hotlap.diagnose.view import look
from hotlap.records.causes import CAUSES
from hotlap.records.codec import dumps, loads
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Finding, Findings, Roof
from hotlap.records.rows import PHASES
from hotlap.records.timeline import Timeline
from hotlap.records.trials import Interval
from hotlap.testing.timelines import TimelineBuilder, cpu_machine


def slow_loader() -> TimelineBuilder:
    return TimelineBuilder().loader(LOADER).steps(100, data_wait=0.02, **COMPUTE).loads(100, 0.02, decode=0.02)


def test_every_cause_has_a_file_but_the_verdict() -> None:
    assert {cause.id for cause in all_causes()} == set(CAUSES) - {"nothing-to-gain"}


def test_a_healthy_timeline_has_no_cause() -> None:
    assert judge(healthy()).findings == []


def test_too_few_steps_say_what_was_seen() -> None:
    with pytest.raises(HotlapError, match=r"trained 5 steps, 4 of them steady; .* at least 8"):
        judge(TimelineBuilder().steps(5, **COMPUTE))


def test_warm_up_is_dropped() -> None:
    found = judge(TimelineBuilder().steps(1, forward=3.0).steps(5, forward=0.2).steps(60, **COMPUTE))
    assert found.throughput.warmup_steps == 6
    assert found.throughput.step_s == pytest.approx(sum(COMPUTE.values()))
    assert found.throughput.batch == 32


def test_not_measured_stays_none() -> None:
    found = judge(TimelineBuilder().steps(60, h2d=None, **COMPUTE))
    assert found.phases["h2d"] is None and found.phases["sync"] == 0.0


def test_confirmed_by_taking_it_away() -> None:
    found = judge(slow_loader())
    sure = {f.cause: f for f in with_ablation(found, "data", Interval(1.9, 1.8, 2.0), "").findings}
    assert sure["decode"].confirmed and sure["decode"].without == 1.9
    unsure = {f.cause: f for f in with_ablation(found, "data", Interval(1.0, 0.97, 1.03), "").findings}
    assert not unsure["decode"].confirmed and "gained nothing" in unsure["decode"].detail
    failed = {f.cause: f for f in with_ablation(found, "data", None, "out of memory").findings}
    assert "out of memory" in failed["decode"].evidence["without"]
    assert with_ablation(found, "logging", Interval(2, 2, 2), "").findings == found.findings
    with pytest.raises(ValueError, match="cannot be taken away"):
        with_ablation(found, "forward", None, "")


def test_what_is_too_small_for_the_gain_is_not_confirmed_by_it() -> None:
    """One trial takes all of loading away: the gain is not each of its findings' own."""
    found = judge(slow_loader())
    decode = next(f for f in found.findings if f.cause == "decode")
    collate = replace(decode, cause="collate", share=0.05, detail="")
    both = {f.cause: f for f in with_ablation(
        replace(found, findings=[decode, collate]), "data", Interval(1.9, 1.8, 2.0), ""
    ).findings}  # fmt: skip
    assert both["decode"].confirmed and both["decode"].without == 1.9
    assert not both["collate"].confirmed and both["collate"].without is None
    assert both["collate"].detail == "taken away together with decode: 1.90x"


def test_loading_that_slows_the_compute_after_it_is_counted_to_loading() -> None:
    before = judge(slow_loader())
    model = before.step_model
    ratio = 2 * before.throughput.step_s / model.compute_s  # without data the step takes half of the compute seen
    after = with_ablation(before, "data", Interval(ratio, 0.9 * ratio, 1.1 * ratio), "").step_model
    assert after.compute_s == pytest.approx(0.5 * model.compute_s, rel=0.05)
    assert after.data_wait_s + after.compute_s == pytest.approx(model.data_wait_s + model.compute_s)
    assert after.load_s is not None and model.load_s is not None
    assert after.load_s - model.load_s == pytest.approx(after.data_wait_s - model.data_wait_s)
    unsure = with_ablation(before, "data", Interval(ratio, 0.9, 2 * ratio), "").step_model
    waited = with_ablation(before, "data", Interval(1.1, 1.05, 1.15), "").step_model
    assert unsure == waited == model


def test_nothing_to_gain_only_at_the_roof() -> None:
    found = judge(healthy())
    at_roof = with_roof(found, Roof(1000.0, 0.02, 0.95, "resident batch"))
    assert [(f.cause, f.confirmed) for f in at_roof.findings] == [("nothing-to-gain", False)]
    assert with_roof(at_roof, Roof(1500.0, 0.014, 0.7, "resident batch")).findings == []
    slow = with_roof(judge(slow_loader()), Roof(1000.0, 0.02, 0.95, "resident batch"))
    assert "nothing-to-gain" not in [f.cause for f in slow.findings]


@pytest.mark.parametrize(("high", "confirmed"), [(1.08, True), (1.8, False)])
def test_nothing_to_gain_is_confirmed_by_all_of_the_interval(high: float, confirmed: bool) -> None:
    at_roof = Roof(1000.0, 0.02, 0.97, "resident batch")
    found = with_roof(judge(healthy()), at_roof, measured=Interval(1.03, 0.9, high))
    assert [f.confirmed for f in found.findings] == [confirmed]


def once(*places: int, n: int = 60, **slow: float) -> TimelineBuilder:
    """Steps of 20 ms, and slow ones at some places."""
    builder = TimelineBuilder()
    for at in range(n):
        builder.steps(1, **{**COMPUTE, **(slow if at in places else {})})
    return builder


def test_what_happened_once_in_a_short_run_is_not_spread_over_its_steps() -> None:
    compiled = judge(once(30, forward=21.0))
    assert compiled.throughput.step_s == pytest.approx(0.0205)
    assert any("Step 30 took 21 s" in note and "left out" in note for note in compiled.notes)
    assert judge(once(20, 40, backward=21.0)).throughput.step_s == pytest.approx(0.0205)


@pytest.mark.parametrize(
    "run",
    [
        once(30, 31, forward=21.0),
        once(15, 30, 45, forward=21.0),
        once(30, residual=21.0),
        once(30, forward=0.3),
        once(1000, n=2000, forward=2.0),
    ],
    ids=[
        "two that follow each other",
        "three",
        "a pause of the script's own",
        "not that much",
        "a small part of a run",
    ],
)
def test_other_slow_steps_are_how_the_script_trains(run: TimelineBuilder) -> None:
    timeline = run.build()
    view = look(timeline, cpu_machine(), DEFAULT)
    assert view.steady.aside == () and view.steady.steps == timeline.n_steps - 1


def test_one_aggregated_row() -> None:
    found = judge(TimelineBuilder().steps(1000, rows_of=1000, **COMPUTE))
    assert found.throughput.steps_seen == 1000 and found.throughput.warmup_steps == 0


def test_what_shares_the_wait_is_scaled_to_it() -> None:
    times = look(slow_loader().build(), cpu_machine(), DEFAULT).times
    whole = [Finding(c, 0.45, 0.02, False, [], "do") for c in ("decode", "augment")]
    ordered = in_order([*whole, Finding("too-few-workers", 0.48, 0.02, False, [], "do")], times, 0.02)
    split = [f.seconds_per_step for f in ordered if f.cause != "too-few-workers"]
    assert sum(split) == pytest.approx(times.phase_s["data_wait"])
    assert [f.cause for f in ordered[:2]] == ["augment", "too-few-workers"], (
        "the way out of the wait stands behind what it consists of"
    )


@pytest.mark.parametrize(("share", "first"), [(0.2, "host-work"), (0.1, "page-faults")])
def test_page_faults_stand_behind_causes_of_their_size(share: float, first: str) -> None:
    times = look(healthy().build(), cpu_machine(), DEFAULT).times
    found = [Finding(c, s, 0.01, False, [], "do") for c, s in (("page-faults", 0.3), ("host-work", share))]
    ordered = in_order([*found, Finding("gc", 0.05, 0.01, False, [], "do")], times, 0.02)
    assert ordered[0].cause == first and ordered[-1].cause == "gc"


def test_at_most_200_points() -> None:
    points = judge(healthy(1003)).over_time
    assert 100 <= len(points) <= 200
    assert set(points[0]) == {"step", "t_s", "step_s", "phases"}


def test_notes_tell_what_failed() -> None:
    notes = judge(healthy(20).note("readers", "PIL has no Image.open")).notes
    assert any("readers: PIL" in note for note in notes) and any("rough" in note for note in notes)


seconds = st.one_of(st.none(), st.just(0.0), st.floats(0.0, 2.0))
stretch = st.tuples(
    st.integers(1, 40), st.integers(1, 50), st.dictionaries(st.sampled_from(PHASES), seconds, max_size=12)
)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    builder = TimelineBuilder(draw(st.sampled_from(["cpu", "GPU"])), batch=draw(st.integers(0, 8)))
    if draw(st.booleans()):
        builder.loader(num_workers=draw(st.integers(0, 4)), persistent_workers=draw(st.booleans()))
    lines = [("train.py", n, "f", text) for n, text in enumerate(["for b in x:", "f.write(x)", "torch.save(x)", ""])]
    for n, rows_of, phases in draw(st.lists(stretch, min_size=1, max_size=4)):
        builder.steps(n, rows_of=rows_of, lo=draw(st.sampled_from([0.0, 0.3])), **phases)
        line, phase = draw(st.sampled_from(lines)), draw(st.sampled_from(PHASES))
        builder.stack(phase, draw(st.integers(0, 5)), line)
        if draw(st.booleans()):
            builder.event(draw(st.sampled_from(["validation", "checkpoint", "logging"])), 0.1, line)
    if draw(st.booleans()):
        builder.loads(5, 0.1, decode=draw(st.floats(0, 0.3)), cpu=draw(st.floats(0, 0.2)), read_bytes=None)
    if draw(st.booleans()):
        builder.worker(5, 0.1, decode=0.05, stacks=[(3, [lines[0]])])
    return builder.ticks(draw(st.integers(0, 4))).build()


@settings(max_examples=60, deadline=None)
@given(timelines())
def test_odd_timelines_give_a_sane_document(timeline: Timeline) -> None:
    try:
        found = diagnose(timeline, cpu_machine(flags=("avx512_bf16",)), "train.py")
    except HotlapError:
        return
    shares = [share for share in found.phases.values() if share is not None]
    assert all(0.0 <= share <= 1.0 for share in shares) and sum(shares) <= 1.0 + 1e-6
    assert all(0.02 <= f.share <= 1.0 for f in found.findings)
    assert all(f.seconds_per_step <= found.throughput.step_s * (1 + 1e-9) for f in found.findings)
    waits = ("decode", "augment", "collate", "storage-read", "worker-startup", "workers-respawned")
    assert sum(f.share for f in found.findings if f.cause in waits) <= (found.phases["data_wait"] or 0.0) + 1e-6
    assert loads(Findings, dumps(found)) == found

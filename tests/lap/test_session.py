"""A lap's arms keep out of each other's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotlap.lap.options import Options, Silent
from hotlap.lap.session import Session
from hotlap.records.call import ENV
from hotlap.records.plan import Move
from hotlap.records.run_folder import RunFolder
from hotlap.testing.timelines import cpu_machine


def test_each_arm_has_a_scratch_folder_of_its_own(tmp_path: Path) -> None:
    options = Options(["python", "train.py"], sandbox=False)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        one, two = session.arm("baseline"), session.arm("cache")
        first, second = (Path(json.loads(Path(arm.spec.env[ENV]).read_text())["scratch"]) for arm in (one, two))
        assert first != second and first.is_dir() and second.is_dir() and first.parent == second.parent
        (second / "used").write_text("by this arm")
        session.discard(two)
        assert first.is_dir() and not second.exists()
    assert not first.parent.exists()


def test_trials_of_one_lap_share_what_the_compiler_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, compiled = "TORCHINDUCTOR_CACHE_DIR", [Move("compile-model", {}, "maths")]
    monkeypatch.delenv(name, raising=False)
    options = Options(["python", "train.py"], sandbox=False)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        one, two = session.arm("one", compiled), session.arm("two", compiled)
        assert one.spec.env[name] == two.spec.env[name] and Path(one.spec.env[name]).parent == session.scratch
        assert name not in session.arm("baseline").spec.env, "the user's own compiled code stays where it is"
        monkeypatch.setenv(name, "/elsewhere")
        assert session.arm("three", compiled).spec.env[name] == "/elsewhere"


def lent(tmp_path: Path, *asked_s: float, by_user: bool = False) -> float:
    options = Options(["python", "train.py"], sandbox=False, budget_s=200.0, budget_asked=by_user)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        for seconds in asked_s:
            session.lend(session.left_s() + seconds)
        assert session.left_s() == pytest.approx(200.0 + session.extra_s, abs=5.0)
        return session.extra_s


def test_a_budget_of_our_own_grows_by_what_a_result_lacks(tmp_path: Path) -> None:
    assert lent(tmp_path, 70.0, -3.0, 25.0) == pytest.approx(95.0, abs=0.1)
    assert lent(tmp_path, 70.0, by_user=True) == 0.0, "the user's budget is the user's"
    assert lent(tmp_path, 210.0) == 0.0, "it would more than double: told, not taken"
    assert lent(tmp_path, 170.0, 40.0) == pytest.approx(170.0, abs=0.1)


def test_what_the_search_is_lent_takes_nothing_from_the_proof(tmp_path: Path) -> None:
    options = Options(["python", "train.py"], sandbox=False, budget_s=200.0)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        session.lend(session.left_s(0.5) + 81.0, 0.5, "search")
        assert session.extra_s == 0.0, "more than the search may be lent"
        session.lend(session.left_s(0.5) + 79.0, 0.5, "search")
        assert session.extra_s == pytest.approx(79.0, abs=0.1)
        assert session.lendable_s("search") == pytest.approx(1.0, abs=0.1) and session.lendable_s() == 200.0


def test_what_a_trial_has_overdrawn_is_granted_beside_what_is_lent(tmp_path: Path) -> None:
    options = Options(["python", "train.py"], sandbox=False, budget_s=200.0)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        session.started -= 300.0
        session.lend(150.0)
        assert session.left_s() == pytest.approx(150.0, abs=0.1)
        assert session.lendable_s() == pytest.approx(50.0, abs=0.1)


@pytest.mark.parametrize(("wanted_s", "by_user", "given_s"), [(660, False, 660), (660, True, 200), (960, False, 200)])
def test_a_budget_of_our_own_grows_for_slow_steps(
    tmp_path: Path, wanted_s: float, by_user: bool, given_s: float
) -> None:
    options = Options(["python", "train.py"], sandbox=False, budget_s=200.0, budget_asked=by_user)
    with Session(options, cpu_machine(), RunFolder.create("train", tmp_path), Silent()) as session:
        assert session.grow(wanted_s) == (given_s == wanted_s)
        assert session.left_s() == pytest.approx(given_s, abs=5.0)

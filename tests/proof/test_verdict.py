"""What a plan owes, and what is claimed for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotlap.proof.verdict import prove, same_bits, strictness
from hotlap.records.codec import dumps, loads
from hotlap.records.plan import Move
from hotlap.records.proof import Proof
from hotlap.records.trials import Interval, Trial

BITS = Move("loader-workers", {"num_workers": 2}, "bits")
MATHS = Move("autocast", {"dtype": "bfloat16"}, "maths")
CURVE = [0.5 + 2.5 * math.exp(-i / 8) for i in range(60)]
NEARLY = [v * (1 + 1e-5) for v in CURVE]


def trial(low: float = 1.8, candidate: Sequence[float | None] = CURVE) -> Trial:
    losses = {"baseline": [*CURVE], "candidate": [*candidate]}
    return Trial("proof", {}, "measured", interval=Interval(2.0, low, 2.2), losses=losses)


def test_equal_bits_are_proved_and_claimed() -> None:
    proof = prove(trial(), [BITS], [CURVE], [CURVE])
    assert (proof.quality.verdict, proof.quality.kind, proof.claimed) == ("proved", "bits", True)
    assert loads(Proof, dumps(proof)) == proof


def test_a_broken_promise_of_bits_is_refuted_with_its_step() -> None:
    changed = [*CURVE[:17], CURVE[17] + 1e-9, *CURVE[18:]]
    proof = prove(trial(), [BITS], [CURVE, CURVE], [CURVE, changed])
    assert (proof.quality.verdict, proof.quality.first_difference) == ("refuted", 17)


def test_the_loosest_move_sets_what_is_owed() -> None:
    assert strictness([BITS, MATHS]) == "maths"
    assert strictness([]) == "bits"
    proof = prove(trial(), [BITS, MATHS], [CURVE] * 2, [NEARLY] * 2)
    assert (proof.quality.verdict, proof.quality.kind) == ("proved", "non-inferior")
    assert proof.quality.time_to_loss is not None and 1.9 < proof.quality.time_to_loss < 2.1


def test_moves_that_draw_other_numbers_are_judged_unpaired() -> None:
    seeds = [[v * f for v in CURVE] for f in (0.97, 1.0, 1.03)]
    drawn = Move("loader-workers", {}, "distribution")
    uppers = [prove(trial(), [move], seeds, seeds, margin_frac=0.02).quality.upper_frac for move in (MATHS, drawn)]
    assert uppers[0] == 0.0 and uppers[1] is not None and uppers[1] > 0.02


def test_the_trials_own_losses_stand_in() -> None:
    assert prove(trial(), [BITS]).quality.verdict == "proved"
    assert prove(trial(), [MATHS]).quality.verdict == "not proved"  # one seed


def test_nothing_is_claimed_without_a_move_an_interval_or_a_gain() -> None:
    assert not prove(trial(), [], [CURVE], [CURVE]).claimed
    assert not prove(trial(low=0.99), [BITS], [CURVE], [CURVE]).claimed
    failed = Trial("proof", {}, "failed", reason="out of memory at step 3")
    proof = prove(failed, [BITS])
    assert not proof.claimed and "out of memory" in proof.notes[0] and proof.quality.verdict == "not proved"
    assert prove(None, [BITS]).speedup is None


def test_no_common_losses_prove_no_bits() -> None:
    assert same_bits([], []).verdict == "not proved"
    assert same_bits([[]], [[1.0]]).verdict == "not proved"


def test_equal_nans_have_equal_bits_and_can_be_written() -> None:
    broken = [*CURVE, math.nan]
    assert '"proved"' in dumps(same_bits([broken], [broken]))


def test_a_candidate_that_diverged_is_refuted_by_its_trial() -> None:
    broken = trial(candidate=[*CURVE[:-1], None])
    assert prove(broken, [MATHS]).quality.verdict == "refuted"


def test_few_equal_bits_prove_nothing_unless_they_are_all() -> None:
    assert same_bits([CURVE[:2]], [CURVE[:2]]).verdict == "not proved"
    assert same_bits([CURVE[:2]], [CURVE[:2]], whole=True).verdict == "proved"
    assert same_bits([CURVE[:2]], [[*CURVE[:1], 0.0]]).verdict == "refuted"

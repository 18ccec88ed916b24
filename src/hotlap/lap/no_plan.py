"""Why a lap ends without a plan, and what would decide it: what to type, where more launches are all that lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotlap.lap.incumbent import SEARCH_UNTIL
from hotlap.lap.launches import FIRST_LEVEL, MOST_PAIRS
from hotlap.lap.prove import LAUNCHES_UNTIL
from hotlap.proof.speedup import MIN_LAUNCHES
from hotlap.proof.student_t import t_quantile
from hotlap.records.plan import Move
from hotlap.records.proof import Proof
from hotlap.records.trials import Interval

__all__ = ["why_no_plan"]


def why_no_plan(proof: Proof, moves: Sequence[Move], budget_s: float, proof_s: float) -> str:
    """``moves`` were to be the plan; ``proof_s`` went into its proof, of the ``budget_s`` of the lap."""
    if proof.quality.verdict == "refuted":
        return f"No plan was written: {proof.quality.summary}"
    told = "No plan was written: the final trial could not tell the plan from the unmodified script."
    found = proof.speedup
    only = "" if any(move.is_knob for move in moves) else "".join(f"--only {move.lever} " for move in moves)
    if found is None or found.launches < MIN_LAUNCHES:
        launches = 0 if found is None else found.launches
        needed = f"{launches} of the {MIN_LAUNCHES} pairs of launches that it takes to tell how launches differ"
        return f"{told} Its time held {needed}: try {only}--budget {math.ceil(budget_s / 30)}m."
    if found.ratio <= 1.0:
        return told
    pairs = _pairs_needed(found)
    if pairs is None:
        return f"{told} {found.ratio:.2f}x is too little to be told from how launches differ here."
    lap_s = pairs * proof_s / found.launches / (LAUNCHES_UNTIL - SEARCH_UNTIL)
    return (
        f"{told} If more of them come out as these {found.launches}, about {pairs} pairs of launches tell: try "
        f"{only}--seeds {pairs} --budget {math.ceil(lap_s / 60)}m."
    )


def _pairs_needed(found: Interval) -> int | None:
    """Pairs of launches whose interval would lie above 1 at the first look, if more spread as those of ``found`` do.

    None: more than a lap launches.
    """
    gain, n = math.log(found.ratio), found.launches
    deviation = math.log(found.high / found.ratio) * math.sqrt(n) / t_quantile(n - 1, 0.5 + found.level / 2)
    for pairs in range(n + 1, MOST_PAIRS + 1):
        if t_quantile(pairs - 1, 0.5 + FIRST_LEVEL / 2) * deviation / math.sqrt(pairs) < gain:
            return pairs
    return None

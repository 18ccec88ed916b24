"""bench/prediction.py: savings from ratios, errors as shares of the step, and the median of them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def prediction() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        return __import__("prediction")
    finally:
        sys.path.remove(str(BENCH))


def lever(id: str, predicted: float | None, ratio: float | None, kept: bool = True) -> dict[str, Any]:
    measured = None if ratio is None else {"ratio": ratio, "low": 0.9 * ratio, "high": 1.1 * ratio}
    return {"id": id, "setting": {}, "predicted": predicted, "measured": measured, "kept": kept}


def test_a_ratio_saves_a_share_of_the_step(prediction: ModuleType) -> None:
    assert prediction.saving(1.25) == pytest.approx(0.2)
    assert prediction.saving(1.0) == 0.0
    assert prediction.saving(0.8) == pytest.approx(-0.25)


def test_only_levers_with_both_numbers_count(prediction: ModuleType) -> None:
    found = prediction.rows_of(
        {"levers": [lever("a", 2.0, 2.0), lever("b", 2.0, None), lever("knob:c", None, 2.0), lever("d", 1.25, 2.5)]}
    )
    assert [row["lever"] for row in found] == ["a", "d"]
    assert found[0]["error_frac"] == 0.0 and found[0]["within"]
    assert found[1]["error_frac"] == pytest.approx(0.4) and not found[1]["within"]


def test_the_score_is_the_median_over_kept_and_put_back(prediction: ModuleType) -> None:
    rows = prediction.rows_of(
        {"levers": [lever("a", 2.0, 2.0), lever("a", 1.25, 1.0, kept=False), lever("b", 1.25, 2.5)]}
    )
    figures = prediction.score({"one": rows[:1], "two": rows[1:]})
    assert figures["levers"] == 3 and figures["scripts"] == 2
    assert figures["error_frac"] == pytest.approx(0.2)
    assert figures["error_kept_frac"] == pytest.approx(0.2)
    assert figures["error_put_back_frac"] == pytest.approx(0.2)
    assert figures["signed_frac"] == pytest.approx(0.0)
    assert figures["error_by_lever"] == {"a": pytest.approx(0.1), "b": pytest.approx(0.4)}


def test_no_rows_have_no_median(prediction: ModuleType) -> None:
    assert prediction.score({"one": []})["error_frac"] is None

"""EER and min t-DCF against a direct transcription of the organisers' formulas, threshold by threshold.

Kinnunen et al. 2018, "t-DCF: a Detection Cost Function for the Tandem Assessment of Spoofing Countermeasures and
Automatic Speaker Verification", with the parameters of the ASVspoof 2019 evaluation plan.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotlap_workloads.anti_spoof.tandem import AsvErrors, asv_errors, min_tdcf, read_asv_scores
from hotlap_workloads.errors import DataError, WorkloadError
from hotlap_workloads.parts.verification import eer


def rates(accepted: list[float], refused: list[float]) -> list[tuple[float, float, float]]:
    """(misses, false alarms, threshold): first everything is accepted, then each score in turn is the last refused."""
    scores = sorted(accepted + refused)
    out = [(0.0, 1.0, scores[0] - 0.001)]
    for threshold in scores:
        misses = sum(score <= threshold for score in accepted) / len(accepted)
        alarms = sum(score > threshold for score in refused) / len(refused)
        out.append((misses, alarms, threshold))
    return out


def organisers_eer(accepted: list[float], refused: list[float]) -> tuple[float, float]:
    misses, alarms, threshold = min(rates(accepted, refused), key=lambda row: abs(row[0] - row[1]))
    return (misses + alarms) / 2, threshold


def organisers_min_tdcf(bona: list[float], spoof: list[float], asv: dict[str, list[float]]) -> float:
    _, threshold = organisers_eer(asv["target"], asv["nontarget"])
    p_fa_asv = sum(score >= threshold for score in asv["nontarget"]) / len(asv["nontarget"])
    p_miss_asv = sum(score < threshold for score in asv["target"]) / len(asv["target"])
    p_miss_spoof_asv = sum(score < threshold for score in asv["spoof"]) / len(asv["spoof"])
    p_spoof = 0.05
    p_tar, p_non = (1 - p_spoof) * 0.99, (1 - p_spoof) * 0.01
    c_miss_asv, c_fa_asv, c_miss_cm, c_fa_cm = 1, 10, 1, 10
    c1 = p_tar * (c_miss_cm - c_miss_asv * p_miss_asv) - p_non * c_fa_asv * p_fa_asv
    c2 = c_fa_cm * p_spoof * (1 - p_miss_spoof_asv)
    return min((c1 * miss + c2 * alarm) / min(c1, c2) for miss, alarm, _ in rates(bona, spoof))


def drawn(seed: int) -> tuple[list[float], list[float], dict[str, list[float]]]:
    random = np.random.default_rng(seed)
    apart = random.uniform(0.1, 3)
    bona, spoof = random.normal(apart, 1, 70), random.normal(0, 1.3, 230)
    asv = {"target": random.normal(3, 1, 90), "nontarget": random.normal(0, 1, 150), "spoof": random.normal(2, 1, 110)}
    return bona.tolist(), spoof.tolist(), {key: values.tolist() for key, values in asv.items()}


@pytest.mark.parametrize("seed", range(8))
def test_as_the_organisers_measure(seed: int, tmp_path: Path) -> None:
    bona, spoof, asv = drawn(seed)
    keys = [1] * len(bona) + [0] * len(spoof)
    assert eer(bona + spoof, keys) == pytest.approx(organisers_eer(bona, spoof)[0], abs=0.5 / len(bona))
    file = tmp_path / "asv.txt"
    file.write_text("".join(f"A01 {key} {score!r}\n" for key, scores in asv.items() for score in scores))
    errors = read_asv_scores(file)
    assert min_tdcf(bona + spoof, keys, errors) == pytest.approx(organisers_min_tdcf(bona, spoof, asv), abs=1e-12)


def test_the_ends() -> None:
    keys = [1, 1, 0, 0]
    asv = AsvErrors(0.02, 0.02, 0.4)
    assert min_tdcf([3, 2, 1, 0], keys, asv) == 0.0
    assert min_tdcf([0, 1, 2, 3], keys, asv) == 1.0  # no better than letting all pass
    assert asv_errors(np.array([2.0, 3.0]), np.array([0.0, 1.0]), np.array([1.5, 0.5])) == AsvErrors(0.0, 0.5, 0.5)


def test_an_asv_system_that_leaves_nothing_to_win() -> None:
    with pytest.raises(WorkloadError, match="t-DCF is not defined"):
        min_tdcf([1, 0], [1, 0], AsvErrors(0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A01 target\n", "line 1 has 2 fields, not `SOURCE KEY SCORE`"),
        ("- target 1\nA01 bonafide 2\n", "line 2: the key is 'bonafide'"),
        ("- target high\n", "line 1: the score is 'high'"),
        ("- target nan\n", "line 1: the score is 'nan'"),
        ("- target 1\n- nontarget 0\n", "has no spoof trial"),
        ("- target 1\n- nontarget 0\nA01 spoof -9\n", "a countermeasure has nothing to win: t-DCF is not defined"),
    ],
)
def test_wrong_asv_scores_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "asv.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=r"asv\.txt") as err:
        read_asv_scores(file)
    assert said in str(err.value)

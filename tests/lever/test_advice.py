"""Levers for a person's hands: they say what to do and where, and are never tried."""

from __future__ import annotations

import dataclasses

import pytest

from hotlap.lever.catalog import augment_batched
from hotlap.lever.contract import Refusal
from hotlap.lever.registry import levers
from hotlap.pack import augment
from hotlap.plan.edits import edits_of
from hotlap.plan.match import candidates, refusals
from hotlap.records.findings import Findings, Where
from hotlap.records.plan import PRESERVES, Move
from hotlap.testing.lever_kit import findings_of, machine_of

ADVICE = [lever for lever in levers().values() if getattr(lever, "ADVICE", False)]
ALL = frozenset(PRESERVES)


def working(*lines: tuple[str, str]) -> Findings:
    """Findings of augmentation at (function, text)."""
    findings = findings_of("augment")
    where = [Where("data.py", 40 + n, function, text) for n, (function, text) in enumerate(lines)]
    return dataclasses.replace(findings, findings=[dataclasses.replace(findings.findings[0], where=where)])


def said(function: str, text: str) -> str:
    findings = working((function, text))
    found = augment_batched.settings(findings.findings[0], findings, machine_of())
    assert isinstance(found, Refusal)
    return found.reason


@pytest.mark.parametrize(
    ("function", "text", "wanted"),
    [
        ("__getitem__", "image = torch.flip(image, [-1])", "flip"),
        ("__getitem__", "image = image[:, :, ::-1].copy()", "flip"),
        ("random_crop", "return image[:, top:top + 112, left:left + 112]", "crop"),
        ("__getitem__", "wave = random_crop(wave, 32000)", "crop_sound"),
        ("__getitem__", "x = ColorJitter(0.4)(x)", "colour"),
        ("rotate_a_little", "return cv2.warpAffine(image, m, size)", "rotate"),
        ("cutout", "image[:, y:y + h, x:x + w] = 0", "erase"),
        ("add_musan", "return wave + gain * other", "add_noise"),
        ("reverb", "return scipy.signal.convolve(wave, rir)", "reverberate"),
        ("spec_augment", "spec[:, f0:f0 + f] = 0", "mask_bands"),
        ("__getitem__", "image = cv2.GaussianBlur(image, (5, 5), 0)", "motion_blur"),
    ],
)
def test_the_line_is_told_the_function_for_batches(function: str, text: str, wanted: str) -> None:
    advice = said(function, text)
    assert f"hotlap.pack.augment.{wanted}(" in advice and f"data.py:40 ({text})" in advice
    assert callable(getattr(augment, wanted))


def test_a_comment_says_nothing_of_what_the_line_does() -> None:
    advice = said("__getitem__", "y = torch.tensor(digits[1:])  # the next token; flipped later")
    assert "works on one sample at a time; do it to whole batches" in advice


def test_every_function_that_is_named_is_there() -> None:
    assert {name for _, name in augment_batched._DOES} | {"crop_sound"} == set(augment.__all__)


def test_other_work_is_told_in_general() -> None:
    advice = said("__getitem__", "return slow(image)")
    assert "data.py:40" in advice and "hotlap.pack.augment has" in advice


@pytest.mark.parametrize(
    ("function", "text"),
    [("encode", "ix = torch.tensor([self.stoi[w] for w in word])"), ("__getitem__", "ids = tokenizer(self.texts[i])")],
)
def test_texts_are_not_told_of_crops(function: str, text: str) -> None:
    advice = said(function, text)
    assert "encode all of them once" in advice and "hotlap.pack" not in advice
    assert "hotlap.pack.augment has" in said("__getitem__", "return encoder(image)")


def test_each_place_gets_its_edit() -> None:
    lines = [("__getitem__", "x = flip(x)"), ("__getitem__", "x = rotate(x)")]
    findings = working(*lines)
    edits = augment_batched.edits(findings.findings[0], {})
    assert [(e.kind, e.line) for e in edits] == [("flip_batches", 40), ("advice", 41)]
    assert ".flip(" in edits[0].advice and ".rotate(" in edits[1].advice
    assert edits_of(Move("augment-batched", {}, "distribution"), findings), "a plan may hold it, for its edits"


@pytest.mark.parametrize("lever", ADVICE, ids=lambda lever: lever.ID)
def test_it_is_never_a_candidate_and_always_said(lever: object) -> None:
    findings, machine, id = findings_of(*lever.TREATS), machine_of(), lever.ID  # type: ignore[attr-defined]
    only = frozenset({id})
    assert candidates(findings, machine, ALL, only, frozenset(), [], frozenset()) == []
    ((found, reason),) = refusals(findings, machine, ALL, only, frozenset())
    assert found == id and reason.startswith("By hand: train.py:12")

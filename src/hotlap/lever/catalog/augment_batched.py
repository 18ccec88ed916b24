"""Augment whole batches rather than sample by sample (advice).

Evidence: The step waits while Python augments one sample after the other.

Gain: One call over a batch in place of one call per sample, on the device where there is one: up to all of the data
wait that augmentation makes.

Runtime: None. What a data set does to a sample cannot be told from what it must do to it, so nothing is changed in a
running training.

Source: Mirroring at the end of __getitem__ is moved into the training loop, where the file shows that nothing else (a
validation) draws from the data set. Elsewhere advice, at each line that takes the time, with the function of
hotlap.pack.augment that does the same to a batch, behind the copy to the device.

Risk: Same law, other draws. A validation that shares the data set has to be kept without augmentation.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hotlap.lever.by_hand import advise, advised, at
from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings, Where
from hotlap.records.machine import Machine

ID = "augment-batched"
TREATS = ("augment",)
PRESERVES = "distribution"
CONFLICTS = ()
NUMERIC = False
ADVICE = True

_SOUND = re.compile(r"(?i)wav|audio|sound|speech|sample_rate|clip\b|utter")
_TEXT = re.compile(r"(?i)stoi|itos|vocab|token|(?:\b|_)encode\b|\bbpe\b")
_DOES = (
    (r"noise|snr|musan", "add_noise"),
    (r"reverb|\brirs?\b|_rirs?\b|rir_|impulse|convolve", "reverberate"),
    (r"spec_?aug|freq\w*_?mask|time_?mask|mask_?(freq|time|band)", "mask_bands"),
    (r"eras|cut_?out", "erase"),
    (r"mix_?up", "mixup"),
    (r"clahe|equali[sz]e", "clahe"),
    (r"blur", "motion_blur"),
    (r"bright|contrast|satur|jitter|colou?r", "colour"),
    (r"rotat", "rotate"),
    (r"flip|mirror|::-1", "flip"),
    (r"crop", "crop"),
)
"""What the user's line or function is called, and the function of hotlap.pack.augment that does it to a batch."""


def evidence(findings: Findings) -> Finding | None:
    """Work per sample that holds the step."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Never tried: what to do, in words."""
    return Refusal(_advice(place(*finding.where)))


def _advice(where: Where) -> str:
    words = f"{where.function} {where.text.partition('#')[0]}"  # comments speak of other things
    function = _function(words)
    if function is None and _TEXT.search(words):
        return (
            f"By hand: {at(where)} encodes one text after the other, in each epoch again; encode all of them once, "
            "before the training: a batch is then an index into what came of it."
        )
    if function is None:
        return (
            f"By hand: {at(where)} works on one sample at a time; do it to whole batches, behind the copy to the "
            "device. hotlap.pack.augment has crops, mirroring, rotation, erasing, colours, blur, noise and "
            "reverberation for batches."
        )
    return (
        f"By hand: {at(where)} works on one sample at a time; hotlap.pack.augment.{function}(batch, …, generator) does "
        "it to a whole batch, behind the copy to the device, each sample with draws of its own."
    )


def _function(words: str) -> str | None:
    """The batched function that the words speak of, or None."""
    found = next((name for pattern, name in _DOES if re.search(pattern, words, re.IGNORECASE)), None)
    return "crop_sound" if found == "crop" and _SOUND.search(words) else found


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing to what the finding says."""
    return bounded(findings, 0.0, finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Nothing but words."""
    advise(target, "hotlap.pack.augment works on whole batches")


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Mirroring is written into the loop where that is safe, the rest is advice."""
    found = advised(finding, _advice)
    kinds = ["flip_batches" if ".flip(" in edit.advice.partition(" works on ")[2] else "advice" for edit in found]
    return [replace(edit, kind=kind) for edit, kind in zip(found, kinds, strict=True)]

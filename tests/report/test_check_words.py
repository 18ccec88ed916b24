"""What ``hotlap check`` leaves for a CI: a JUnit file that every reader takes."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from hotlap.records.check import Check
from hotlap.records.trials import Interval, Trial
from hotlap.report import check_words
from hotlap.testing.timelines import cpu_machine

COLOURED = "\x1b[31mbroken\x1b[0m \x00 half \udce4, whole \N{ROCKET}\ttab"


def test_what_xml_cannot_hold_is_left_out() -> None:
    trial = Trial("check", {}, "measured", interval=Interval(0.5, 0.4, 0.6, 0.98, 4))
    found = Check(
        "refuted", 0.05, 0.1, COLOURED, "1" * 40, 1, ["python", COLOURED], trial, cpu_machine(), notes=[COLOURED]
    )
    for text in (check_words.junit(found, False, 1.0), check_words.junit_error(["python", COLOURED], COLOURED, 1.0)):
        case = xml.fromstring(text.encode()).find("testcase")  # a surrogate has no bytes
        assert (
            case is not None and "\ufffd[31mbroken" in str(case.get("name")) and "\N{ROCKET}" in str(case.get("name"))
        )

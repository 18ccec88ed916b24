"""What ``hotlap check`` says: lines for people, annotations and a summary for GitHub, a JUnit file."""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from hotlap.records.check import Check
from hotlap.report import units

__all__ = ["annotation", "annotation_error", "junit", "junit_error", "lines", "markdown", "markdown_error"]


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""XML 1.0, production 2: a reader refuses the whole file for one such character, also where it is escaped."""


def _ratio(found: Check) -> str:
    interval = found.trial.interval
    assert interval is not None
    over = f"{interval.launches} launch{'' if interval.launches == 1 else 'es'} of each"
    text = units.ratio_interval(interval.ratio, interval.low, interval.high)
    return f"{text} the throughput of {found.against} ({over})"


def _claim(found: Check) -> str:
    allowed = units.share(found.max_slowdown_frac)
    return {
        "proved": f"not slower than the {allowed} allowed",
        "refuted": f"slower than the {allowed} allowed",
        "not proved": f"whether it is slower than the {allowed} allowed is open",
    }[found.verdict]


def _power(found: Check) -> str:
    return (
        f"At this budget a slowdown of {units.share(found.seen_from_frac)} is seen half of the time, a larger one more "
        "often; a larger `--budget` and more `--launches` see smaller ones."
    )


def lines(found: Check) -> list[str]:
    """The verdict, the ratio, the power, the notes."""
    return [f"{found.verdict}: {_claim(found)}", _ratio(found), _power(found), *(f"note: {n}" for n in found.notes)]


def annotation(found: Check, strict: bool) -> str:
    """A workflow command of GitHub Actions; empty where all is well."""
    if found.verdict == "proved":
        return ""
    return _command("error" if found.verdict == "refuted" or strict else "warning", f"{_claim(found)}: {_ratio(found)}")


def annotation_error(why: str) -> str:
    """The same where nothing could be measured."""
    return _command("error", why)


def _command(kind: str, text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{kind} title=hotlap check::{text[:1].upper()}{text[1:]}"


def markdown(found: Check) -> str:
    """For the step's summary."""
    return "\n".join([f"### hotlap check: {found.verdict}", "", *(f"- {line}" for line in lines(found)), ""])


def markdown_error(why: str) -> str:
    """The same where nothing could be measured."""
    return "\n".join(["### hotlap check: not measured", "", f"- {why}", ""])


def junit(found: Check, strict: bool, wall_s: float) -> str:
    """One test case, which fails as the command does."""
    failed = found.verdict == "refuted" or (strict and found.verdict != "proved")
    case = _case(" ".join(found.command), wall_s, failures=int(failed))
    if failed:
        xml.SubElement(case[1], "failure", message=_clean(lines(found)[0])).text = _clean("\n".join(lines(found)))
    xml.SubElement(case[1], "system-out").text = _clean("\n".join(lines(found)))
    return xml.tostring(case[0], encoding="unicode") + "\n"


def junit_error(command: list[str], why: str, wall_s: float) -> str:
    """The same where nothing could be measured."""
    suite, case = _case(" ".join(command), wall_s, errors=1)
    xml.SubElement(case, "error", message=_clean(why))
    return xml.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """A colour of the script's last words, half a character of a file's name: nothing that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _case(name: str, wall_s: float, failures: int = 0, errors: int = 0) -> tuple[xml.Element, xml.Element]:
    counts = {"tests": "1", "failures": str(failures), "errors": str(errors), "skipped": "0"}
    suite = xml.Element("testsuite", {"name": "hotlap check", "time": f"{wall_s:.3f}", **counts})
    return suite, xml.SubElement(suite, "testcase", classname="hotlap.check", name=_clean(name), time=f"{wall_s:.3f}")

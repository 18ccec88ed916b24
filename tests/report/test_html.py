"""The HTML report: well formed, self-contained, nothing of the user's is markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.report import sample

from hotlap.records.proof import Quality
from hotlap.report.chart_proof import losses
from hotlap.report.html import render

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks the balance of tags and collects what matters."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]} at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("state", sample.STATES)
def test_well_formed_and_self_contained(state: str) -> None:
    html = render(sample.STATES[state]())
    page = parsed(html)
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", html)
    assert not any(name in ("src", "href", "srcset", "action") for _, attributes in page.tags for name in attributes)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert len(html) < 400_000
    words = " ".join(page.text).split()
    assert "None" not in words and "nan" not in words and "inf" not in words


def test_markup_in_every_text_does_nothing() -> None:
    html = render(sample.nasty())
    assert "alert('x')</script>" not in html and "<img" not in html
    assert "&lt;script&gt;alert(" in html
    assert "学習スクリプト" in html


@pytest.mark.parametrize("state", sample.STATES)
def test_every_drawn_number_is_finite(state: str) -> None:
    for tag, attributes in parsed(render(sample.STATES[state]())).tags:
        drawn = {
            key: value
            for key, value in attributes.items()
            if key in ("x", "x1", "x2", "y1", "cy", "cx", "points", "style")
        }
        for value in drawn.values():
            assert not re.search(r"nan|inf", value or ""), (tag, drawn)
        for width in re.findall(r"(?:width|left):([0-9.e+-]+)%", attributes.get("style") or ""):
            assert 0 <= float(width) <= 100


def test_the_full_report_says_everything() -> None:
    text = " ".join(" ".join(parsed(render(sample.speedup())).text).split())
    for part in (
        "6.9x faster",
        "[6.7, 7.2]",
        "212 samples/s",
        "1,471 samples/s",
        "11 % → 77 % of the roof",
        "quality proved",
        "data wait",
        "Drift at step 400:",
        "confirmed: 3.40x without loading",
        "soundfile.py:285 read",
        "wave, rate = soundfile.read(",
        "put back",
        "the trial ran out of memory after 14 steps",
        "1.02x [0.98, 1.05]",
        "2.80x",
        "non-inferior loss",
        "lever: cache-decode",
        "hotlap run --plan fast.yaml -- python train.py --data clips",
        "Platinum 8481C",
        "Two windows were dropped",
        "background-fetch",
    ):
        assert part in text, part


def test_charts_have_a_name_and_a_table() -> None:
    html = render(sample.speedup())
    page = parsed(html)
    plots = [a for tag, a in page.tags if tag == "svg" and a.get("role") == "img"]
    assert len(plots) == 4 and all(plot.get("aria-label") for plot in plots)
    assert html.count("As a table") == 2
    assert 'class="window candidate dropped"' in html


def test_sections_without_a_document_are_left_out() -> None:
    html = render(sample.cut_off())
    text = " ".join(" ".join(parsed(html).text).split())
    assert "This run was interrupted." in text and "Not reached: the machine's facts, the roof" in text
    for gone in ('id="ladder"', 'id="proof"', 'id="plan"', 'id="keep"'):
        assert gone not in html
    assert 'id="causes"' in html


def test_nothing_is_claimed_without_a_proof() -> None:
    for report in (sample.nothing_to_gain(), sample.failed_levers(), sample.absurd()):
        text = " ".join(parsed(render(report)).text)
        assert "x faster" not in text and "with the plan samples" not in text


def test_what_an_interrupted_run_had_kept_is_no_plan() -> None:
    cut_off = replace(sample.speedup(), status="interrupted", proof=None, plan=None)
    text = " ".join(" ".join(parsed(render(cut_off)).text).split())
    assert "with what was kept, not proven 1,4" in text and "x faster" not in text
    assert "with the plan 1,471 samples/s" in " ".join(" ".join(parsed(render(sample.speedup())).text).split())


def test_a_sandbox_that_nobody_looked_for_is_not_said_to_be_missing() -> None:
    found = sample.diagnose()
    assert found.machine is not None and ">Sandbox<" in render(found)
    assert ">Sandbox<" not in render(replace(found, machine=replace(found.machine, sandbox="")))


def test_losses_below_zero_keep_their_shape() -> None:
    curve = [-100.0, -98.0, -95.0]
    quality = Quality("proved", "bits", "Equal.", raw={"baseline": [curve], "candidate": [curve]})
    drawn = re.findall(r'points="([^"]+)"', str(losses(quality)))
    assert len(drawn) == 2
    for points in drawn:
        heights = [float(point.split(",")[1]) for point in points.split()]
        assert heights == sorted(set(heights), reverse=True) and len(heights) == 3

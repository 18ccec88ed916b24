"""The page of a run, by what kind of run it was."""

from __future__ import annotations

from hotlap.report import check_page, html, seed_page
from hotlap.report.saved import CHECK, SEEDS
from hotlap.report.view import Report

__all__ = ["render"]


def render(report: Report) -> str:
    """The whole page of ``report``, one self-contained HTML file."""
    made = {CHECK: check_page.render, SEEDS: seed_page.render}.get(report.kind, html.render)
    return made(report)

"""What is sent back, and what a browser may do with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hotlap.report.page import script_hash

__all__ = ["Answer", "json_answer", "page", "report_page", "text_file"]

NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
OWN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of our own pages: scripts and styles from this server alone, none within the page; widths of bars are attributes."""


@dataclass(frozen=True)
class Answer:
    """One answer."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    policy: str = OWN
    status: int = 200


def page(text: str, status: int = 200) -> Answer:
    """A page of ours."""
    return Answer(text.encode("utf-8", "replace"), status=status)


def report_page(body: bytes) -> Answer:
    """``report.html`` as it lies in the folder: anybody may have changed it, so that of all scripts only the one runs
    that we write into every report, and the page counts as a stranger's (sandbox): no cookie, no request, no form."""
    policy = (
        f"default-src 'none'; script-src {script_hash()}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
    )
    return Answer(body, policy=policy)


def json_answer(value: Any) -> Answer:
    """Numbers for the page's script."""
    body = json.dumps(value, allow_nan=False).encode()
    return Answer(body, "application/json; charset=utf-8", NOTHING)


def text_file(text: str, kind: str) -> Answer:
    """The style or the script of our pages."""
    return Answer(text.encode(), f"{kind}; charset=utf-8", NOTHING)

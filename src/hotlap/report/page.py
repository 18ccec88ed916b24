"""What every HTML page of ours is made with: one base template, one style, one script, every value escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

__all__ = ["environment", "script_hash"]


@cache
def environment(room: str = "hotlap.report") -> Environment:
    """Templates of ``room``, and below them those of the report. A value that is missing is an error."""
    rooms = dict.fromkeys((room, "hotlap.report"))
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in rooms]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def script_hash() -> str:
    """The one script of a page that ``base.html`` makes, as a content security policy names it."""
    text = "\n" + environment().get_template("script.js").render()
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

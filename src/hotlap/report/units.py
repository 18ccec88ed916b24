"""The only place that rounds. Every function takes None (not measured) and returns a dash for it."""

from __future__ import annotations

import math

from hotlap.records.sizes import size_text

__all__ = [
    "NONE",
    "bytes_",
    "count",
    "factor",
    "interval",
    "milliseconds",
    "per_s",
    "plain",
    "ratio",
    "ratio_interval",
    "seconds",
    "share",
    "signed_milliseconds",
    "signed_share",
    "tick",
]

NONE = "\u2013"
"""What stands for a value that was not measured, or is no number."""


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _significant(value: float, digits: int = 3) -> str:
    """``value`` with so many significant digits, thousands separated, never in exponent form below 1e15."""
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-9:
        return f"{value:.{digits - 1}e}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    return f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


def seconds(value: float | None) -> str:
    """``0.212`` -> ``212 ms``; ``754`` -> ``12 min 34 s``."""
    if value is None or not _known(value):
        return NONE
    size = abs(value)
    if size == 0:
        return "0 s"
    for limit, factor, unit in ((0.9995e-6, 1e9, "ns"), (0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if size < limit:
            return f"{_significant(value * factor)} {unit}"
    if size < 119.5:
        return f"{_significant(value)} s"
    if size >= 1e11:  # three thousand years: no duration any more
        return f"{value:.1e} s"
    sign, whole = ("-" if value < 0 else ""), round(size)
    for limit, (big, big_unit), (small, small_unit) in (
        (7200, (60, "min"), (1, "s")),
        (172800, (3600, "h"), (60, "min")),
        (math.inf, (86400, "d"), (3600, "h")),
    ):
        if whole < limit:
            return f"{sign}{whole // big:,} {big_unit} {whole % big // small} {small_unit}"
    raise AssertionError("unreachable")


def milliseconds(value: float | None) -> str:
    """A column of step times in one unit, which its head names: ``0.00634`` -> ``6.34``."""
    if value is None or not _known(value):
        return NONE
    size = abs(1e3 * value)
    if 0 < size < 0.005:
        return "< 0.01"
    return f"{1e3 * value:,.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def signed_milliseconds(value: float | None) -> str:
    """``0.0055`` -> ``+5.50``, for differences."""
    text = milliseconds(value)
    if value is None or text.startswith(("-", NONE)) or value == 0:
        return text
    return f"+{text}" if not text.startswith("<") else "0.00"


def ratio(value: float | None) -> str:
    """``3.04`` -> ``3.04x``."""
    if value is None or not _known(value):
        return NONE
    size = abs(value)
    if size >= 1e6:
        return f"{value:.1e}x"
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:,.{decimals}f}x" if size >= 0.01 or size == 0 else f"{_significant(value, 2)}x"


def factor(value: float | None) -> str:
    """A ratio without its sign and without idle zeros: ``6.8`` -> ``6.8``, ``120`` -> ``120``."""
    text = ratio(value).removesuffix("x")
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def share(value: float | None) -> str:
    """``0.11`` -> ``11 %``; a share below 0.1 % says so."""
    if value is None or not _known(value):
        return NONE
    percent = 100 * value
    if percent == 0:
        return "0 %"
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:,.0f} %" if abs(percent) >= 9.95 else f"{percent:.1f}".removesuffix(".0") + " %"


def signed_share(value: float | None) -> str:
    """``0.004`` -> ``+0.4 %``, for differences."""
    if value is None or not _known(value):
        return NONE
    percent = 100 * value
    text = (
        f"{percent:+,.0f}"
        if abs(percent) >= 9.95
        else f"{percent:+.1f}"
        if abs(percent) >= 0.095
        else f"{percent:+.2f}"
    )
    return "0 %" if float(text.replace(",", "")) == 0 else f"{text} %"


def per_s(value: float | None) -> str:
    """Throughput without its unit: ``1904.3`` -> ``1,904``, ``21.18`` -> ``21.2``."""
    if value is None or not _known(value):
        return NONE
    return f"{value:,.0f}" if 99.95 <= abs(value) < 1e15 else _significant(value)


def plain(value: float | None) -> str:
    """A number without unit (a loss): three significant digits."""
    return NONE if value is None or not _known(value) else _significant(value)


def tick(value: float, unit: str = "") -> str:
    """An axis label: a value that is round already, ``2.5`` -> ``2.5``."""
    return f"{value:,.6g}{unit}" if _known(value) else NONE


def bytes_(value: float | None) -> str:
    """``4509715661`` -> ``4.2 GiB``."""
    if value is None or not _known(value):
        return NONE
    return size_text(float(value))


def count(value: float | None) -> str:
    """``1234567`` -> ``1,234,567``."""
    return NONE if value is None or not _known(value) else f"{value:,.0f}"


MOST_DECIMALS = 4


def _decimals(low: float, high: float) -> int:
    """As many as the interval's width deserves: 0.5 wide -> 1, 0.07 -> 2. Below ten at least one; more where a bound
    would be rounded to 1 or across it, for that side is what an interval is read for."""
    width = abs(high - low)
    least = 1 if low < 10.0 else 0
    fitting = 2 if width == 0 else min(MOST_DECIMALS, max(least, math.ceil(0.25 - math.log10(width))))
    told = (d for d in range(fitting, MOST_DECIMALS + 1) if all(_side(round(x, d)) == _side(x) for x in (low, high)))
    return next(told, fitting)


def _side(value: float) -> int:
    """Of 1: below, at it, above."""
    return (value > 1.0) - (value < 1.0)


def interval(low: float | None, high: float | None) -> str:
    """``(6.71, 7.18)`` -> ``[6.7, 7.2]``."""
    if low is None or high is None or not (_known(low) and _known(high)):
        return NONE
    decimals = _decimals(low, high)
    return f"[{low:,.{decimals}f}, {high:,.{decimals}f}]"


def ratio_interval(value: float | None, low: float | None, high: float | None) -> str:
    """``(6.93, 6.71, 7.18)`` -> ``6.9x [6.7, 7.2]``: value and bounds with the same number of decimals."""
    if value is None or low is None or high is None or not (_known(value) and _known(low) and _known(high)):
        return ratio(value)
    return f"{value:,.{_decimals(low, high)}f}x {interval(low, high)}"

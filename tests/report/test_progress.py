"""The live display: quiet in a log, one line on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from hotlap.report.progress import Live


def test_a_log_gets_a_line_now_and_then_and_every_permanent_line() -> None:
    out, now = io.StringIO(), [0.0]
    live = Live(Console(file=out, width=60), clock=lambda: now[0])
    with live:
        for second in range(20):
            now[0] = float(second)
            live.update("trying cache-decode", "limit 4 [x]", "candidate", second, 180.0, 10 * second)
        live.line("+ cache-decode  3.04x [bold]" + "a" * 80)
    lines = out.getvalue().splitlines()
    assert sum("trying cache-decode" in line for line in lines) == 4
    assert lines[1].split() == [
        "0:05",
        "/",
        "3:00",
        "trying",
        "cache-decode",
        "limit",
        "4",
        "[x]",
        "candidate",
        "·",
        "50",
        "steps",
    ]
    assert lines[-1] == "+ cache-decode  3.04x [bold]" + "a" * 80
    assert "\x1b" not in out.getvalue()


def test_a_terminal_has_one_line_that_goes_and_lines_that_stay() -> None:
    out = io.StringIO()
    live = Live(Console(file=out, width=60, force_terminal=True))
    live.update("diagnosing", elapsed_s=3.0)
    live.line("+ cache-decode  3.04x")
    live.update("proving", "seed 2", "baseline", 3700.0, 7200.0, 5)
    live.update("try compile-model", elapsed_s=3700.0, budget_s=225.0)
    live.stop()
    live.stop()
    text = out.getvalue()
    assert "+ cache-decode  3.04x" in text and "proving" in text and "1:01:40 / 2:00:00" in text
    assert "1:01:40, past 3:45" in text
    assert text.rstrip("\n").endswith(("\x1b[?25h", "\x1b[2K"))  # the line was taken away, the cursor is back


def test_it_writes_to_stderr_by_default() -> None:
    assert Live().console.stderr

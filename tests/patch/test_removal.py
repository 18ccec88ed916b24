"""What is taken out of a script leaves the comments around it."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.patch.patch import Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")


def without(source: str) -> str:
    source = textwrap.dedent(source)
    lines = [n for n, text in enumerate(source.splitlines(), 1) if "detect_anomaly" in text]
    wanted = [Wanted(Edit("remove", "s.py", n, target="set_detect_anomaly|detect_anomaly"), "a-lever") for n in lines]
    return patch_file("s.py", source.encode(), wanted).after.decode()


def test_comments_of_a_with_stay_in_their_order() -> None:
    source = """\
    def f():
        # why
        with detect_anomaly():  # find the NaN
            # forward
            out = model(x)  # here

            out.backward()
            # checked
        # next
        step()
    """
    assert without(source) == textwrap.dedent("""\
    def f():
        # why
        # find the NaN
        # forward
        out = model(x)  # here

        out.backward()
        # checked
        # next
        step()
    """)


@pytest.mark.parametrize("head", ["", "for x in loader:\n"])
def test_comments_at_the_end_of_a_block_and_of_nested_ones_stay(head: str) -> None:
    inner = (
        "with detect_anomaly():\n    with detect_anomaly():  # one\n        a = 1\n        # two\n    # three\n# four\n"
    )
    after = "# one\na = 1\n# two\n# three\n# four\n"
    by = "    " if head else ""
    assert without(head + textwrap.indent(inner, by)) == head + textwrap.indent(after, by)


def test_a_section_s_comment_stays_and_that_of_the_line_goes() -> None:
    source = """\
    x = 1

    # ---- training ----
    # look for NaN
    set_detect_anomaly(True)
    for x in loader:
        # all of it:

        set_detect_anomaly(True)  # slow
        step(x)

        set_detect_anomaly(False)
        # the end
    """
    assert without(source) == textwrap.dedent("""\
    x = 1

    # ---- training ----
    for x in loader:
        # all of it:

        step(x)
        # the end
    """)


def test_of_blank_lines_the_longer_run_stays() -> None:
    assert without("a = 1\n\nset_detect_anomaly(True)\n\n\nb = 2\n") == "a = 1\n\n\nb = 2\n"
    assert without("a = 1\n\nset_detect_anomaly(True)\nb = 2\n") == "a = 1\n\nb = 2\n"

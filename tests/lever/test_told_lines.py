"""Lines that processes leave for each other: each reader reads all, once, and nothing else is needed."""

from __future__ import annotations

from pathlib import Path

from hotlap.lever.told_lines import ToldLines, tell_line


def test_each_reader_has_a_place_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "told")
    first, second = ToldLines(path), ToldLines(path)
    assert first.new() == []
    tell_line(path, "used", "a|1")
    assert first.new() == [["used", "a|1"]] and first.new() == []
    tell_line(path, "ended", "a|1", "it changes")
    with open(path, "ab") as file:
        file.write(b"half a line")
    assert first.new() == [["ended", "a|1", "it changes"]] and len(second.new()) == 2
    tell_line(path, ", and the rest")
    assert first.new() == [["half a line, and the rest"]]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    tell_line(str(tmp_path / "none" / "told"), "used", "a|1")
    assert ToldLines(str(tmp_path / "none" / "told")).new() == []

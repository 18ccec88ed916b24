"""What is kept of files holds as long as they are the same; what is written, or read for something else, is none."""

from __future__ import annotations

import builtins
import io
import os
import pathlib
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.lever.file_cache import FileCache
from hotlap.lever.kept_results import KeptResults
from hotlap.lever.opened_files import are_unchanged, unnoted, watch_openings, with_files
from hotlap.lever.readers import cached_reader
from hotlap.testing.lever_target import LocalTarget


def names(files: Any) -> list[str]:
    return sorted(os.path.basename(name) for name, _ in files)


def test_what_is_read_is_noted_whoever_opens_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1"), np.save(tmp_path / "b.npy", np.zeros(2))

    def read() -> int:
        (tmp_path / "written").write_text("2")
        _, inner = with_files((tmp_path / "a").read_bytes)
        assert names(inner) == ["a"]
        unnoted((tmp_path / "written").read_text)
        return int(np.load(tmp_path / "b.npy")[0]) + (tmp_path / "none").exists()

    real = builtins.open
    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        assert builtins.open is io.open is not real and target.changes == 0
        value, files = with_files(read)
        assert value == 0 and names(files) == ["a", "b.npy"] and are_unchanged(files)
        os.utime(tmp_path / "b.npy", ns=(1, 1))
        assert not are_unchanged(files)
        assert with_files(lambda: os.path.exists(tmp_path / "a"))[1] == ()
    assert builtins.open is io.open is real and pathlib.io.open is real and not target.problems  # type: ignore[attr-defined]


def test_a_reader_that_keeps_what_it_reads_tells_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.zeros(2))
    load = cached_reader(FileCache(str(tmp_path / "cache"), 1 << 20), "numpy.load", np.load)
    for _ in range(2):
        assert names(with_files(lambda: load(tmp_path / "b.npy"))[1]) == ["b.npy"]


def test_a_result_is_none_any_more_when_its_file_is_another(tmp_path: Path) -> None:
    path, results = tmp_path / "a", KeptResults(FileCache(str(tmp_path / "cache"), 1 << 20))
    path.write_text("one")

    def changing() -> str:
        text = path.read_text()
        path.write_text("other" + text)
        return text

    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        assert results.through("p|1|0", path.read_text) == "one" == results.get("p|1|0")
        path.write_text("second")
        assert results.get("p|1|0") is None and results.through("p|1|0", path.read_text) == "second"
        assert results.through("p|2|0", changing) == "second" and results.get("p|2|0") is None
        _, files = with_files(lambda: results.through("p|3|0", path.read_text))
        assert names(files) == ["a"]
        assert with_files(lambda: results.get("p|3|0"))[1] == files, "it was made of that file, whoever read it"
        results.forget("p|3")
        assert results.get("p|3|0") is None


def test_an_opener_that_is_asked_wrongly_says_so_itself(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        for wrong in (("",), (tmp_path / "a", 3), ("a\0b",), (10**6,), (None,)):
            try:
                with_files(lambda wrong=wrong: open(*wrong))  # noqa: SIM115
            except (OSError, TypeError, ValueError) as err:
                assert not isinstance(err, UnboundLocalError)
            else:
                raise AssertionError(wrong)

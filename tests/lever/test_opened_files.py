"""What is kept of files holds as long as they are the same; what is written, or read for something else, is none."""

from __future__ import annotations

import builtins
import copy
import functools
import io
import os
import pathlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.utils.data
from PIL import Image, ImageFile

from hotlap.lever.contents import Contents
from hotlap.lever.file_cache import FileCache
from hotlap.lever.kept_results import KeptResults
from hotlap.lever.opened_files import are_unchanged, unnoted, watch_openings, with_files
from hotlap.lever.readers import cached_image_load, cached_reader
from hotlap.lever.sample_purity import impure_reason
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


def test_in_a_worker_what_caches_read_for_themselves_is_no_part_of_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: "a worker")
    np.save(tmp_path / "b.npy", np.zeros(2))
    Image.new("RGB", (4, 4)).save(tmp_path / "c.png")
    cache, results = (FileCache(str(tmp_path / name), 1 << 20) for name in ("decoded", "kept"))
    kept = KeptResults(results)

    def drawn() -> Any:
        with Image.open(tmp_path / "c.png") as image:
            read_image(image)
            return read_array(tmp_path / "b.npy"), np.asarray(image)

    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        read_array = cached_reader(cache, "numpy.load", np.load)
        read_image = cached_image_load(cache, Image, ImageFile.ImageFile.load)
        for number in range(2):  # decoded, and given from the cache
            _, files = with_files(lambda number=number: kept.through(f"p|{number}|0", drawn))
            assert names(files) == ["b.npy", "c.png"] and kept.get(f"p|{number}|0") is not None


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


def test_an_opener_of_the_scripts_own_is_asked_as_the_script_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    monkeypatch.setattr(builtins, "open", functools.partial(open, mode="rb"))
    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        for opening in (functools.partial(open, path), functools.partial(open, file=path)):
            file, files = with_files(opening)
            with file:
                assert file.read() == b"1" and names(files) == ["a"]
        assert pickle.loads(pickle.dumps(open)) is open


def test_an_opener_is_no_method_of_the_class_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        reader: Any = type("Reader", (), {"opener": open})()
        with reader.opener(path) as file:
            assert file.read() == "1"
        assert pickle.loads(pickle.dumps(open)) is open is copy.deepcopy(open) and open.__name__ == "open"
    with reader.opener(path) as file:
        assert file.read() == "1"


def test_a_data_set_that_holds_the_opener_is_read_as_before(tmp_path: Path) -> None:
    class Held:
        def __init__(self) -> None:
            self.opener = open

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            with self.opener(tmp_path / str(index)) as file:
                return file.read()

    before = impure_reason(Held())
    with LocalTarget(str(tmp_path)) as target:
        watch_openings(target)
        assert impure_reason(Held()) == before
        Contents(Held())

"""A packing that stopped: what goes on with it, what begins anew, and that nobody is told to remove a pack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pack_support import RAGGED, Rows, mixed

from hotlap.pack import Pack, PackSettings, pack, verify
from hotlap.records.errors import HotlapError

SMALL = {"chunk_bytes": 2000, "part_bytes": 8000}


class Stamped(Rows):
    """A source that changes with its stamp."""

    def __init__(self, rows: list[Any], stamp: str) -> None:
        super().__init__(rows, RAGGED)
        self.stamp = stamp

    def fingerprint(self) -> str:
        return self.stamp


def stopped(target: Path, bad: int = 35, **settings: Any) -> list[Any]:
    """Rows of which one cannot be packed, and a packing that stopped there."""
    rows: list[Any] = mixed(40)
    rows[bad] = ValueError("broken")
    with pytest.raises(HotlapError, match=f"row-{bad}: ValueError: broken Leave such rows out with --on-error"):
        pack(Rows(rows, RAGGED), target, PackSettings(**SMALL, **settings))
    return rows


@pytest.mark.parametrize("append", [False, True])
def test_the_hint_of_a_stopped_packing_can_be_followed(tmp_path: Path, append: bool) -> None:
    if append:
        pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    rows = stopped(tmp_path / "p", append=append)
    again = Rows(rows, RAGGED)
    done = pack(again, tmp_path / "p", PackSettings(on_error="quarantine", append=append, **SMALL))
    assert done.rows == 39 + 20 * append and done.left_out == 1 and len(again.asked) < 40
    listed = [json.loads(line) for line in (tmp_path / "p" / "left_out.jsonl").read_text().splitlines()]
    assert [entry["name"] for entry in listed] == ["row-35"] and verify(tmp_path / "p") == []


def test_rows_that_were_left_out_stop_a_packing_that_is_to_stop(tmp_path: Path) -> None:
    rows: list[Any] = mixed(40)
    rows[2], rows[38] = ValueError("broken"), KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        pack(Rows(rows, RAGGED), tmp_path / "p", PackSettings(on_error="quarantine", **SMALL))
    rows[38] = mixed(40)[38]
    with pytest.raises(HotlapError, match="row-2: ValueError: broken"):
        pack(Rows(rows, RAGGED), tmp_path / "p", PackSettings(**SMALL))
    done = pack(Rows(rows, RAGGED), tmp_path / "p", PackSettings(on_error="quarantine", **SMALL))
    assert done.rows == 39 and len((tmp_path / "p" / "left_out.jsonl").read_text().splitlines()) == 1


def test_nobody_is_told_to_remove_the_pack_that_is_appended_to(tmp_path: Path) -> None:
    target = tmp_path / "p"
    pack(Rows(mixed(20), RAGGED), target, PackSettings(**SMALL))
    stopped(target, append=True)
    for count, ragged, what in ((9, frozenset[str](), "another source"), (40, frozenset({"x"}), "other options")):
        with pytest.raises(HotlapError, match=what) as told:
            pack(Rows(mixed(count), RAGGED), target, PackSettings(append=True, ragged=ragged, **SMALL))
        assert told.value.hint.endswith(f"remove {target / '.packing'}: what is packed already stays.")
    for path in (target / ".packing").iterdir():  # as told
        path.unlink()
    (target / ".packing").rmdir()
    pack(Rows(mixed(1, seed=1), RAGGED), target, PackSettings(append=True, **SMALL))
    found = Pack(target)
    assert len(found) == 21 and verify(target) == []
    parts = {name for p in found.manifest.parts for name in (p.file, p.lengths_file)}
    assert {path.name for path in target.glob("part-*")} == parts, "what was given up must not fill the disk"


def test_a_repaired_source_begins_anew(tmp_path: Path) -> None:
    bad: list[Any] = [*mixed(1), ValueError("broken"), *mixed(38)]
    with pytest.raises(HotlapError, match="broken"):
        pack(Stamped(bad, "broken"), tmp_path / "p", PackSettings(**SMALL))
    assert pack(Stamped(mixed(40), "repaired"), tmp_path / "p", PackSettings(**SMALL)).rows == 40, "nothing was packed"
    bad = [*mixed(30), ValueError("broken"), *mixed(9)]
    with pytest.raises(HotlapError, match="broken"):
        pack(Stamped(bad, "broken"), tmp_path / "q", PackSettings(**SMALL))
    with pytest.raises(HotlapError, match="of this one before it changed") as told:
        pack(Stamped(mixed(40), "repaired"), tmp_path / "q", PackSettings(**SMALL))
    assert told.value.hint.endswith(f"remove {tmp_path / 'q' / '.packing'} and the part-* files beside it.")


def test_notes_of_a_packing_that_was_done_do_not_hinder_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotlap.pack import job

    with monkeypatch.context() as patch:
        patch.setattr(job, "remove_notes", lambda job: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pack(Rows(mixed(20), RAGGED), tmp_path / "p", PackSettings(**SMALL))
    pack(Rows(mixed(9, seed=1), RAGGED), tmp_path / "p", PackSettings(append=True, **SMALL))
    assert len(Pack(tmp_path / "p")) == 29 and not (tmp_path / "p" / ".packing").exists()


@pytest.mark.parametrize(("err", "text"), [
    (KeyError("id"), "KeyError: 'id'"), (AssertionError(), "AssertionError"), (OSError("gone"), "gone"),
])  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_what_a_row_raised_is_told_with_its_type(tmp_path: Path, err: Exception, text: str, first: bool) -> None:
    rows = [err] if first else [{"x": 1}, err]
    with pytest.raises(HotlapError) as told:
        pack(Rows(rows), tmp_path / "p")
    assert told.value.what == f"Cannot pack row-{len(rows) - 1}: {text}"

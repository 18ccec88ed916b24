"""Adding a lever is one file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hotlap.lever import catalog
from hotlap.lever.registry import lever, levers
from hotlap.plan.match import candidates
from hotlap.records.errors import HotlapError
from hotlap.testing.lever_kit import findings_of, machine_of


def test_a_new_file_is_a_new_lever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(str(catalog.__file__)).with_name("debug_off.py").read_text()
    (tmp_path / "brand_new.py").write_text(source.replace('ID = "debug-off"', 'ID = "brand-new"'))
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(tmp_path)])
    try:
        assert "brand-new" in levers()
        found = candidates(findings_of("autograd-debug"), machine_of(), {"bits"}, set(), set(), [], set())
        assert {c.lever for c in found} == {"debug-off", "brand-new"}
    finally:
        sys.modules.pop("hotlap.lever.catalog.brand_new", None)


def test_two_levers_of_one_id_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(str(catalog.__file__)).with_name("debug_off.py").read_text()
    (tmp_path / "twin.py").write_text(source)
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(tmp_path)])
    try:
        with pytest.raises(HotlapError, match="debug-off"):
            levers()
    finally:
        sys.modules.pop("hotlap.lever.catalog.twin", None)


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(HotlapError, match="loader-workers"):
        lever("loader-worker")

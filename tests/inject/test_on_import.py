"""Callbacks run after a module was executed and before its importer goes on."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from hotlap.inject.on_import import forget, on_import


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "hotlap_test_imported"
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield name
    sys.modules.pop(name, None)


def test_called_once_with_executed_module(module: str) -> None:
    seen = []
    on_import(module, lambda m: seen.append(m.value))
    assert seen == []
    importlib.import_module(module)
    importlib.import_module(module)
    assert seen == [1]


def test_importer_sees_what_the_callback_did(module: str) -> None:
    on_import(module, lambda m: setattr(m, "value", 2))
    namespace: dict[str, object] = {}
    exec(f"from {module} import value", namespace)
    assert namespace["value"] == 2


def test_called_at_once_when_imported_before(module: str) -> None:
    importlib.import_module(module)
    seen = []
    on_import(module, lambda m: seen.append(m.__name__))
    assert seen == [module]


def test_the_loader_is_left_as_it_was(module: str) -> None:
    on_import(module, lambda m: None)
    imported = importlib.import_module(module)
    assert "exec_module" not in vars(imported.__spec__.loader)


def test_forgotten_callbacks_are_not_called(module: str) -> None:
    seen = []

    def callback(m: object) -> None:
        seen.append(m)

    on_import(module, callback)
    forget(callback)
    importlib.import_module(module)
    assert seen == []


def test_a_callback_may_ask_for_the_same_module(module: str) -> None:
    seen = []
    on_import(module, lambda m: on_import(module, lambda m: seen.append(m.value)))
    importlib.import_module(module)
    assert seen == [1]

"""Who may import whom: import-linter's contracts, shown to catch a violation of each, and what ast alone can see."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOTLAP = ROOT / "src" / "hotlap"
WORKLOADS = ROOT / "src" / "hotlap_workloads"
GUEST_ROOMS = ("records", "probe", "inject", "lever")
"""What enters the user's process."""
PURE_ROOMS = ("diagnose", "proof", "compare")
READERS = {"PIL", "cv2", "soundfile"}
"""Libraries that a lever may import inside a function, where the user's own import of them called it."""
IMPURE = {"torch", "os", "pathlib", "subprocess", "time", "shutil", "socket", "tempfile", "io", "random", "threading"}

PLANTED = {
    "records/planted.py": ("import hotlap.proof.same", "documents flow one way: cli, lap, stages, levers, records"),
    "trial/planted.py": (
        "import hotlap.testing",
        "probe, diagnose, lever, machine, trial, proof, report, patch, lint and compare know records alone",
    ),
    "report/planted.py": (
        "import hotlap.probe.hook_points",
        "stages never reach down to levers and probes, inject and plan excepted",
    ),
    "patch/planted.py": (
        "import hotlap.lever.registry",
        "stages never reach down to levers and probes, inject and plan excepted",
    ),
    "lint/planted.py": ("import hotlap.patch.patch", "documents flow one way: cli, lap, stages, levers, records"),
    "compare/planted.py": (
        "import hotlap.diagnose.policy",
        "documents flow one way: cli, lap, stages, levers, records",
    ),
    "ui/planted.py": (
        "import hotlap.trial.design",
        "the local page reads what lies there: it starts, measures and changes nothing",
    ),
    "plan/planted.py": ("import hotlap.probe.hook_points", "plan knows levers, not probes"),
    "records/planted_too.py": ("import numpy", "records import nothing but the standard library"),
    "probe/planted.py": ("import psutil", "what enters the user's process is standard library and torch"),
    "lap/planted.py": ("import torch", "the host never imports torch"),
    "diagnose/planted.py": ("import pathlib", "diagnose, proof and compare are pure"),
    "lever/catalog/planted.py": ("import hotlap.lever.catalog.planted_too", "levers do not know each other"),
    "lever/catalog/planted_too.py": ("", ""),
    "pack/planted.py": ("import hotlap.report.units", "the packed-data loader is usable alone"),
    "machine/planted.py": ("import hotlap_workloads.errors", "the tool does not know the reference trainings"),
    "../hotlap_workloads/planted.py": (
        "import hotlap.records",
        "the reference trainings know the packed-data loader alone",
    ),
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    command = [str(program), "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says about a copy of the source with a violation of each contract."""
    folder = tmp_path_factory.mktemp("planted")
    for package in (HOTLAP, WORKLOADS):
        shutil.copytree(package, folder / "src" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (line, _) in PLANTED.items():
        (folder / "src" / "hotlap" / name).write_text(line + "\n")
    return lint_imports(folder).stdout


@pytest.mark.parametrize(("line", "contract"), [p for p in PLANTED.values() if p[1]])
def test_a_planted_violation_breaks_its_contract(planted: str, line: str, contract: str) -> None:
    assert f"{contract} BROKEN" in " ".join(planted.split()), f"`{line}` went unseen:\n{planted}"


def test_every_contract_has_a_planted_violation() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert {c["name"] for c in settings["contracts"]} == {contract for _, contract in PLANTED.values() if contract}


def test_the_source_keeps_all_contracts() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


def files(*rooms: str) -> list[Path]:
    return sorted(p for room in rooms for p in (HOTLAP / room).rglob("*.py"))


def imports(path: Path, lazy: bool) -> Iterator[tuple[int, str]]:
    """(line, module) of each import; with ``lazy`` False, of those that run when the module is imported."""

    def skipped(node: ast.AST) -> bool:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return True
        return not lazy and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)

    def walk(node: ast.AST) -> Iterator[tuple[int, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((child.lineno, alias.name) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.lineno, child.module or "."
            elif not skipped(child):
                yield from walk(child)

    return walk(ast.parse(path.read_text(encoding="utf-8")))


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_pure_rooms_touch_neither_files_nor_clocks_nor_torch() -> None:
    wrong = [
        f"{where(path, line)} {module}"
        for path in files(*PURE_ROOMS)
        for line, module in imports(path, lazy=True)
        if module.split(".")[0] in IMPURE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_users_process_gets_the_standard_library_and_torch_alone() -> None:
    rooms = {f"hotlap.{room}" for room in GUEST_ROOMS} | {"hotlap"}
    wrong = []
    for path in files(*GUEST_ROOMS):
        eager = set(imports(path, lazy=False))
        for line, module in imports(path, lazy=True):
            top = module.split(".")[0]
            if top in READERS and (line, module) not in eager:
                continue
            ours = top == "hotlap" and ".".join(module.split(".")[:2]) in rooms
            if not (ours or top in sys.stdlib_module_names or top in ("torch", "__future__", ".")):
                wrong.append(f"{where(path, line)} {module}")
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_only_after_the_user_has() -> None:
    wrong = [
        f"{where(path, line)} {module}"
        for path in files(*GUEST_ROOMS)
        for line, module in imports(path, lazy=False)
        if module.split(".")[0] == "torch"
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_command_line_prints_and_exits() -> None:
    wrong = []
    for path in sorted(HOTLAP.rglob("*.py")):
        if path.is_relative_to(HOTLAP / "cli") or path == HOTLAP / "__main__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            to_stderr = any(k.arg == "file" and ast.unparse(k.value) == "sys.stderr" for k in node.keywords)
            if called == "print" and to_stderr and path.parent.name == "bootstrap":
                continue  # a door that does not open can tell nobody else
            if called in ("print", "sys.exit", "exit", "quit", "input"):
                wrong.append(f"{where(path, node.lineno)} {called}")
    assert not wrong, "\n".join(wrong)


def test_no_error_is_swallowed_whole() -> None:
    """``except Exception: pass`` hides bugs; catching everything is allowed where something is done about it."""
    wrong = []
    for path in sorted([*HOTLAP.rglob("*.py"), *WORKLOADS.rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ExceptHandler):
                continue
            broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
            if broad and all(isinstance(statement, ast.Pass) for statement in node.body):
                wrong.append(where(path, node.lineno))
    assert not wrong, "\n".join(wrong)

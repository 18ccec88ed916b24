"""The doctor: each trouble it knows, planted, and a healthy machine without a complaint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotlap.machine.doctor import CHECKS, Check, examine
from hotlap.machine.host import Host, read_host
from hotlap.machine.storage import Mount, Storage
from hotlap.records.codec import dumps
from hotlap.records.machine import Accelerator, Machine

FLAGS = ["avx2", "avx512_bf16"]
MACHINE = Machine(
    "Linux", "CPU", 8, 1 << 35, 1 << 34, FLAGS, "3.11", "2.13.0+cpu", sandbox="root", compiler="g++", shm_bytes=8 << 30
)
HOST = Host(8, 0.4, "performance", "madvise", 65536)
STORAGE = Storage("/data", 2e9, 1e9, True, 1 << 40, Mount("/", "ext4", "/dev/sda1"))
T4 = Accelerator("Tesla T4", 16 << 30, "7.5", False, True, False, True)


def look(machine: dict[str, Any] | None = None, host: dict[str, Any] | None = None, **storage: Any) -> dict[str, Check]:
    checks = examine(
        replace(MACHINE, **(machine or {})),
        Path("/data"),
        None,
        replace(STORAGE, **storage),
        replace(HOST, **(host or {})),
    )
    return {check.name: check for check in checks}


def test_a_healthy_machine_has_no_complaint() -> None:
    found = look()
    assert len(found) == len(CHECKS)
    assert [c.name for c in found.values() if c.state != "ok"] == []


@pytest.mark.parametrize(
    ("name", "state", "change", "word"),
    [
        ("torch", "fail", {"machine": {"torch": None}}, "Install"),
        ("torch", "fail", {"machine": {"torch": "2.4.1"}}, "2.6"),
        ("system", "warn", {"machine": {"system": "Windows"}}, "WSL 2"),
        ("system", "warn", {"machine": {"system": "Darwin"}}, "not tested"),
        ("cores", "warn", {"machine": {"cores": 2}}, "8 cores are visible"),
        ("cores", "warn", {"machine": {"cores": 1}, "host": {"logical_cores": 1}}, "take turns"),
        ("load now", "warn", {"host": {"busy_cores": 5.0}}, "wait"),
        ("memory available", "warn", {"machine": {"memory_available_bytes": 1 << 29}}, "one after the other"),
        ("shared memory", "warn", {"machine": {"shm_bytes": 64 << 20}}, "--shm-size"),
        ("storage read", "warn", {"read_bytes_per_s": 5e7}, "hard disk"),
        ("storage read", "warn", {"mount": Mount("/data", "nfs4", "s:/")}, "nfs4"),
        ("sandbox", "warn", {"machine": {"sandbox": "none"}}, "SYS_ADMIN"),
        ("torch.compile", "warn", {"machine": {"compiler": None}}, "compiler"),
        ("stack sampling", "warn", {"host": {"timer_signal": False}}, "SIGALRM"),
        ("environment", "warn", {"host": {"environment": {"OMP_NUM_THREADS": "32"}}}, "above the 8"),
        ("environment", "warn", {"host": {"environment": {"OMP_NUM_THREADS": "1"}}}, "idle"),
        ("environment", "warn", {"host": {"environment": {"CUDA_LAUNCH_BLOCKING": "1"}}}, "unset"),
        ("CPU governor", "warn", {"host": {"governor": "powersave"}}, "performance"),
        ("huge pages", "warn", {"host": {"huge_pages": "never"}}, "madvise"),
        ("open files", "warn", {"host": {"open_files": 256}}, "ulimit"),
        ("bf16 in hardware", "ok", {"machine": {"accelerators": [T4]}}, "8.0"),
    ],
)
def test_each_trouble_is_named_with_what_to_do(name: str, state: str, change: dict[str, Any], word: str) -> None:
    check = look(**change)[name]
    assert check.state == state and word in check.advice


def test_a_folder_that_cannot_be_measured_is_a_finding(tmp_path: Path) -> None:
    found = {c.name: c for c in examine(MACHINE, tmp_path / "gone", host=HOST)}
    assert found["storage read"].state == "warn"


def test_the_caller_says_which_sandbox_there_is() -> None:
    bare = replace(MACHINE, sandbox="none")
    states = [
        {c.name: c.state for c in examine(bare, Path("/data"), given, STORAGE, HOST)}["sandbox"]
        for given in ("root", "userns", "none", None)
    ]
    assert states == ["ok", "ok", "warn", "warn"]


def test_this_host_can_be_examined_and_written(tmp_path: Path) -> None:
    host = read_host(environment={"OMP_NUM_THREADS": "2", "SECRET": "x"}, sample_s=0.01)
    assert host.environment == {"OMP_NUM_THREADS": "2"} and host.logical_cores >= 1
    assert '"name": "torch"' in dumps(examine(MACHINE, tmp_path, None, STORAGE, host))


def test_windows_is_not_promised_what_needs_a_unix() -> None:
    assert "diagnose" not in look(machine={"system": "Windows"})["system"].advice

"""Reading this machine, without torch in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.machine import facts
from hotlap.machine.ask_torch import accelerators
from hotlap.machine.cpu import read_cpu
from hotlap.machine.facts import ask_torch, find_compiler, read_machine
from hotlap.records.codec import dumps, loads
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Machine


def test_a_host_is_told_from_others_and_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for name in ("node-17", "node-18", ""):
        monkeypatch.setattr(facts.platform, "node", lambda name=name: name)
        told.append(facts.host_digest())
    assert told[0] != told[1] and told[2] is None and "node" not in str(told)


def test_this_machine_can_be_read_written_and_read_again() -> None:
    found = read_machine(sandbox="userns")
    assert found.torch and 1 <= found.cores <= (os.cpu_count() or 1) and found.sandbox == "userns"
    assert 0 < found.memory_available_bytes <= found.memory_bytes
    assert loads(Machine, dumps(found)) == found


def test_the_host_does_not_import_torch() -> None:
    code = "import sys, hotlap.machine.facts, hotlap.machine.doctor; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.13.0", None])
def test_a_cpu_build_is_known_by_its_package(version: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def packaged(name: str) -> str:
        if version is None:
            raise facts.importlib.metadata.PackageNotFoundError(name)
        return version

    asked = {"torch": "2.13.0", "python": "3.11.9", "accelerators": [], "problem": None}
    monkeypatch.setattr(facts.importlib.metadata, "version", packaged)
    monkeypatch.setattr(facts, "ask_torch", lambda python: asked)
    assert read_machine().torch == ("2.13.0+cpu" if version == "2.13.0+cpu" else "2.13.0")
    for found in (read_machine(import_torch=True), read_machine("/another/python")):
        assert (found.torch, found.python) == ("2.13.0", "3.11.9"), "another Python has packages of its own"


def test_what_a_cpu_build_tells_is_what_torch_says() -> None:
    told = facts.told_by_package()
    if told is None:
        pytest.skip("torch here is no CPU build")
    assert told == ask_torch()


def python(tmp_path: Path, body: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_that_cannot_be_run_or_dies_is_named(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="no-such-python"):
        ask_torch(str(tmp_path / "no-such-python"))
    with pytest.raises(HotlapError, match=r"ended with 3.*libc is gone"):
        ask_torch(python(tmp_path, "echo libc is gone >&2; exit 3"))


def test_chatter_of_torch_is_skipped_and_a_broken_torch_is_an_error(tmp_path: Path) -> None:
    line = r'{"torch": null, "python": "3.11", "accelerators": [], "problem": "OSError: libcudart.so"}'
    path = python(tmp_path, f"echo warning: old driver; echo 'HOTLAP {line}'")
    with pytest.raises(HotlapError, match=r"libcudart\.so"):
        read_machine(path)


def test_no_torch_is_a_fact(tmp_path: Path) -> None:
    line = r'{"torch": null, "python": "3.11.0", "accelerators": [], "problem": null}'
    assert read_machine(python(tmp_path, f"echo 'HOTLAP {line}'")).torch is None


def test_a_slow_import_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_TIMEOUT_S", 0.2)
    with pytest.raises(HotlapError, match="import torch"):
        ask_torch(python(tmp_path, "exec sleep 5"))


class FakeCuda:
    """torch.cuda with two devices."""

    def __init__(self, *found: tuple[str, int, int]) -> None:
        self.found = found

    def is_available(self) -> bool:
        return bool(self.found)

    def device_count(self) -> int:
        return len(self.found)

    def get_device_properties(self, index: int) -> object:
        name, major, minor = self.found[index]
        return type("P", (), {"name": name, "major": major, "minor": minor, "total_memory": 1 << 34})


def fake_torch(hip: str | None, *found: tuple[str, int, int]) -> object:
    return type("T", (), {"cuda": FakeCuda(*found), "version": type("V", (), {"hip": hip})})


def test_what_each_gpu_can_do() -> None:
    found = accelerators(fake_torch(None, ("P100", 6, 0), ("T4", 7, 5), ("A100", 8, 0), ("P40", 6, 1)))
    assert [(g["fp16"], g["bf16"], g["tf32"]) for g in found] == [
        (True, False, False),
        (True, False, False),
        (True, True, True),
        (False, False, False),
    ]
    assert accelerators(fake_torch("6.2", ("MI250X", 9, 0)))[0]["tf32"] is False
    assert accelerators(fake_torch(None)) == []


def test_the_compiler_named_by_the_user_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = python(tmp_path, "exit 0")
    monkeypatch.setenv("CXX", mine)
    assert find_compiler() == mine
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert find_compiler() is None


def test_hyperthreads_are_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\nmodel name : Xeon\n"
        "cpu MHz : 2000.0\nflags : avx2 sse amx_bf16\n"
    )
    for number in range(4):
        path = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text("0-1" if number < 2 else "2-3")
    monkeypatch.setattr("hotlap.machine.cpu._usable", lambda: {0, 1, 2, 3})
    found = read_cpu(tmp_path)
    assert (found.name, found.physical_cores, found.clock_hz, found.flags) == ("Xeon", 2, 2e9, ["avx2", "amx_bf16"])

"""An allocator by LD_PRELOAD: a library made here is preloaded into a real process, and told from one that is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.inject import door
from hotlap.lever.catalog import allocator_preload
from hotlap.lever.contract import Refusal
from hotlap.machine.allocators import find_allocators
from hotlap.records.call import Call
from hotlap.records.plan import Move
from hotlap.testing.lever_kit import findings_of, machine_of

CHILD = """
import json, os, sys
from hotlap.lever.catalog import allocator_preload
from hotlap.testing.lever_target import LocalTarget
target = LocalTarget(".")
allocator_preload.apply(target, {"library": sys.argv[1]})
print(json.dumps([target.changes, target.reasons, os.environ["LD_PRELOAD"]]))
"""

TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 2))
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 3, 16, 16)), torch.arange(8) % 2)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item().hex())
"""

COUNTING = """
#include <stddef.h>
extern void *__libc_malloc(size_t);
long hotlap_test_mallocs;
void *malloc(size_t size) { hotlap_test_mallocs++; return __libc_malloc(size); }
"""


@pytest.fixture
def library(tmp_path: Path) -> str:
    """An allocator that hands on to glibc's, under a link as distributions have it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    real, link = tmp_path / "libjemalloc.so.2.9", tmp_path / "libjemalloc.so.2"
    (tmp_path / "counting.c").write_text(COUNTING)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(real), str(tmp_path / "counting.c")], check=True)
    link.symlink_to(real)
    return str(link)


def child(library: str, preload: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, library], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "LD_PRELOAD": preload},
    )  # fmt: skip
    found: list[object] = json.loads(done.stdout)
    return found


def test_a_preloaded_library_is_seen_and_another_is_not(library: str) -> None:
    assert child(library, library) == [1, [], library]
    changes, reasons, _ = child(library, "")
    assert changes == 0 and "not in the process" in str(reasons)
    gone = library.replace("libjemalloc", "libnone")
    assert child(gone, gone)[0] == 0, "the dynamic linker complains, and goes on without it"


def test_a_training_gives_the_same_bits(library: str) -> None:
    """With the allocators that are installed; with the one made here where there is none."""
    shown = set()
    for preload in ("", *(find_allocators() or [library])):
        done = subprocess.run(
            [sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "LD_PRELOAD": preload},
        )  # fmt: skip
        shown.add(done.stdout)
    assert len(shown) == 1 and "".join(shown).count("0x") == 5


def test_the_door_puts_it_before_what_the_user_preloads(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/lib/theirs.so")
    moves = [Move("allocator-preload", {"library": library}, "bits")]
    env = door.environment(Call(str(tmp_path), moves=moves))
    assert env["LD_PRELOAD"] == f"{library}:/lib/theirs.so"
    monkeypatch.setenv("LD_PRELOAD", f"/lib/theirs.so {library}")
    assert door.environment(Call(str(tmp_path), moves=moves))["LD_PRELOAD"] == f"/lib/theirs.so {library}"


def test_refusals() -> None:
    findings = findings_of("page-faults")
    finding = findings.findings[0]
    for machine, reason in ((machine_of(allocators=[]), "installed"), (machine_of(system="Darwin"), "Darwin")):
        found = allocator_preload.settings(finding, findings, machine)
        assert isinstance(found, Refusal) and reason in found.reason
    assert "no allocator found here" in (allocator_preload.check({"library": "/lib/libc.so.6"}, machine_of()) or "")

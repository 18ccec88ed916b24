"""Cores and memory within cgroup limits, on trees written like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.machine import limits
from hotlap.machine.limits import cpu_quota, memory_limit_bytes, memory_now, usable_cores


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_v2_takes_the_tightest_of_the_group_and_its_parents(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "sys/fs/cgroup/jobs/mine/cpu.max": "max 100000\n",
        "sys/fs/cgroup/jobs/cpu.max": "250000 100000\n",
        "sys/fs/cgroup/cpu.max": "700000 100000\n",
    }
    assert cpu_quota(tree(tmp_path, files)) == 2.5


def test_v1_quota_and_no_quota(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",  # a container sees its own group at the mount
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert cpu_quota(tree(tmp_path / "a", files)) == 1.5
    files["sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n"
    assert cpu_quota(tree(tmp_path / "b", files)) is None
    assert cpu_quota(tmp_path / "nothing") is None


def test_cores_are_affinity_within_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    group = {"proc/self/cgroup": "0::/\n"}
    assert usable_cores(tree(tmp_path / "free", group)) == 4
    for quota, cores in (("250000", 2), ("50000", 1), ("900000", 4), ("300000", 3)):
        root = tree(tmp_path / quota, {**group, "sys/fs/cgroup/cpu.max": f"{quota} 100000\n"})
        assert usable_cores(root) == cores


def test_memory_limit_leaves_out_reclaimable_cache(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "1000000\n",
        "sys/fs/cgroup/memory.current": "700000\n",
        "sys/fs/cgroup/memory.stat": "anon 200000\ninactive_file 400000\n",
    }
    assert memory_limit_bytes(tree(tmp_path / "v2", files)) == (1_000_000, 300_000)
    v1 = {
        "proc/self/cgroup": "2:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
    }
    assert memory_limit_bytes(tree(tmp_path / "v1", v1)) is None


def test_a_group_has_no_more_memory_than_its_parent_leaves(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "sys/fs/cgroup/jobs/mine/memory.max": "16000000\n",
        "sys/fs/cgroup/jobs/mine/memory.current": "1000000\n",
        "sys/fs/cgroup/jobs/memory.max": "32000000\n",
        "sys/fs/cgroup/jobs/memory.current": "31000000\n",
    }
    assert memory_now(tree(tmp_path, files)) == (16_000_000, 1_000_000)
    files["sys/fs/cgroup/jobs/memory.current"] = "33000000\n"
    assert memory_now(tree(tmp_path, files)) == (16_000_000, 0)
    files["sys/fs/cgroup/jobs/memory.max"] = "max\n"
    assert memory_now(tree(tmp_path, files)) == (16_000_000, 15_000_000)

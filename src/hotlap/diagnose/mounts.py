"""What kind of file systems the data lies on, as far as the batches looked into tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hotlap.records.timeline import Timeline

__all__ = ["is_network", "mounts_read", "remote_frac"]

_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "glusterfs", "beegfs", "gpfs", "afs", "virtiofs",
))  # fmt: skip


def is_network(kind: str) -> bool:
    """Whether a file system's reads cross a network or a hypervisor; every ``fuse.*`` counts too."""
    return kind in _NETWORK or (kind.startswith("fuse") and kind != "fuseblk")


def mounts_read(timelines: Iterable[Timeline]) -> dict[str, int]:
    """Files read by kind of file system, all processes together."""
    found: Counter[str] = Counter()
    for timeline in timelines:
        rows = [row.value for row in timeline.setting if row.name == "file_reads"]
        found.update({kind: int(count) for kind, count in ((rows[-1].get("mounts") or {}) if rows else {}).items()})
    return dict(found)


def remote_frac(mounts: dict[str, int]) -> float:
    """Part of the files that lie on network file systems, 0..1."""
    return sum(n for kind, n in mounts.items() if is_network(kind)) / max(1, sum(mounts.values()))

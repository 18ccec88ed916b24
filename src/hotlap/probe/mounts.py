"""On what kind of file system files lie, by their device number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

__all__ = ["mount_kinds"]


def mount_kinds(devices: Iterable[int], mountinfo: str = "/proc/self/mountinfo") -> dict[str, int]:
    """How many of the device numbers (``st_dev``) belong to each kind (``ext4``, ``nfs4``, ``fuse.sshfs``).

    Devices that the system does not list (sub-volumes, systems without ``/proc``) are left out.
    """
    wanted = Counter(devices)
    if not wanted:
        return {}
    try:
        with open(mountinfo, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    kinds: dict[int, str] = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        major, colon, minor = fields[2].partition(":") if len(fields) > 2 else ("", "", "")
        if colon and right:
            kinds[os.makedev(int(major), int(minor))] = right.split()[0]
    found: Counter[str] = Counter()
    for device, count in wanted.items():
        if device in kinds:
            found[kinds[device]] += count
    return dict(found)

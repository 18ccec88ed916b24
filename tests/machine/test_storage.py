"""Storage: nothing left behind, network mounts told apart, bad folders said plainly."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.machine.storage import Mount, measure_storage, mount_of
from hotlap.records.errors import HotlapError

MOUNTINFO = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /data rw - nfs4 server:/export rw
31 22 0:41 / /data/my\\040clips rw shared:7 - fuse.sshfs host:/clips rw
32 22 0:42 / /mnt/c rw - 9p C: rw
33 22 0:43 / /usb rw - fuseblk /dev/sdb1 rw
"""


def test_a_measurement_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    found = measure_storage(tmp_path, file_bytes=2 << 20)
    assert found.read_bytes_per_s > 1e5 and found.write_bytes_per_s > 1e5 and found.free_bytes > 0
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_the_file_goes_also_when_reading_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("hotlap.machine.storage._read", broken)
    with pytest.raises(HotlapError, match="Input/output error"):
        measure_storage(tmp_path, file_bytes=1 << 20)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="gone"):
        measure_storage(tmp_path / "gone")


@pytest.mark.parametrize(
    ("folder", "kind", "network"),
    [
        ("/home/me", "ext4", False),
        ("/data/voices", "nfs4", True),
        ("/data/my clips/a", "fuse.sshfs", True),
        ("/mnt/c", "9p", True),
        ("/usb/x", "fuseblk", False),
        ("/database", "ext4", False),
    ],
)
def test_the_innermost_mount_decides(tmp_path: Path, folder: str, kind: str, network: bool) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTINFO)
    found = mount_of(Path(folder), table)
    assert found is not None and (found.kind, found.network) == (kind, network)


def test_no_mount_table_is_no_error(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is None
    assert Mount("/", "overlay", "overlay").network is False

"""The launcher's file system: real folders covered by overlays whose writes go to a throw-away layer.

Loaded by the launcher without the package around it: standard library and ctypes only.
"""

import contextlib
import ctypes
import errno
import os
import re

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 1024, 2048, 4096, 16384, 1 << 18, 1 << 21
MNT_DETACH = 2
SYS_OPEN_TREE, SYS_MOVE_MOUNT = 428, 429  # the same numbers on every architecture
OPEN_TREE, MOVE_EMPTY = 1 | os.O_CLOEXEC | 0x1000 | 0x8000, 0x4  # clone, close-on-exec, empty path, recursive
LEFT_ALONE = ("/proc", "/sys", "/dev", "/run")
PSEUDO = {  # no user's data
    "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf", "mqueue",
    "hugetlbfs", "fusectl", "configfs", "pstore", "binfmt_misc", "nsfs", "efivarfs", "rpc_pipefs", "autofs",
}  # fmt: skip
WORK = "/proc"  # always there; hidden by the layers' tmpfs only while the mounts are made
FLAGS = {
    b"ro": MS_RDONLY, b"nosuid": MS_NOSUID, b"nodev": MS_NODEV, b"noexec": MS_NOEXEC,
    b"noatime": MS_NOATIME, b"nodiratime": MS_NODIRATIME, b"relatime": MS_RELATIME,
}  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)


class Impossible(Exception):
    """The sandbox cannot be made; the text says why."""


def call(what: str, result: int) -> int:
    """Turn a C call's -1 into an OSError that says what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    encoded = kind.encode() if kind else None
    arguments = (os.fsencode(source), os.fsencode(target), encoded, ctypes.c_ulong(flags), os.fsencode(data))
    call(f"mount {target}", libc.mount(*arguments))


def clone_tree(fd: int) -> int:
    """A detached copy of the mounts that an O_PATH descriptor stands on."""
    return call("open_tree", libc.syscall(SYS_OPEN_TREE, fd, b"", OPEN_TREE))


def attach(tree: int, target: str) -> None:
    """Put a detached copy in place (folders and files alike, and without /proc)."""
    call(f"attach {target}", libc.syscall(SYS_MOVE_MOUNT, tree, b"", -100, os.fsencode(target), MOVE_EMPTY))


def inside(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_mounts() -> dict[str, tuple[str, int]]:
    """Mount point -> (file system type, flags), of what is visible now."""
    found = {}
    with open("/proc/self/mountinfo", "rb") as rows:
        for row in rows:
            left, _, right = row.partition(b" - ")
            fields = left.split()
            point = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), fields[4])
            flags = sum(FLAGS.get(option, 0) for option in fields[5].split(b","))
            found[os.fsdecode(point)] = (right.split()[0].decode(), flags)
    return found


def is_left_alone(path: str, kind: str = "tmpfs") -> bool:
    """Devices, shared memory and run-time sockets stay real; a disk mounted under /run does not."""
    return any(inside(path, top) for top in LEFT_ALONE) and (kind == "tmpfs" or not inside(path, "/run"))


class Layers:
    """Covers the file system, folder by folder."""

    def __init__(self, userns: bool, writable: list[str]) -> None:
        self.mounts = read_mounts()
        self.writable = sorted({os.path.realpath(folder) for folder in writable})
        self.userns = userns
        self.covered: set[str] = set()
        self.why: dict[str, str] = {}
        self.count = 0
        self.nested = sorted(
            point
            for point, (kind, _) in self.mounts.items()
            if point != "/" and kind not in PSEUDO and not is_left_alone(point, kind)
        )

    def targets(self) -> list[str]:
        """Real folders at the top of ``/`` and mount points, parents first."""
        tops = [e.path for e in os.scandir("/") if e.is_dir(follow_symlinks=False) and e.path not in LEFT_ALONE]
        found = {*tops, *self.nested}
        if self.userns:
            found.update(f for f in self.writable if not is_left_alone(f) and self.crosses_foreign(f, found))
        return sorted(found)

    def crosses_foreign(self, path: str, targets: set[str]) -> bool:
        """Whether a folder between ``path`` and the overlay around it has an owner that a user namespace does not know.

        Such a folder cannot be copied to the upper layer (EOVERFLOW), so ``path`` needs an overlay of its own.
        """
        while path not in targets and path != "/":
            facts = os.stat(path)
            if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
                return True
            path = os.path.dirname(path)
        return False

    def overlay(self, fd: int, path: str) -> None:
        """Cover ``path``; ``fd`` stands on the real folder. Paths with odd characters never reach the mount options."""
        self.count += 1
        upper, work = f"{WORK}/{self.count}u", f"{WORK}/{self.count}w"
        os.mkdir(upper)
        os.mkdir(work)
        facts = os.fstat(fd)
        with contextlib.suppress(OSError):  # an owner that a user namespace does not know: it becomes the user's own
            os.chown(upper, facts.st_uid, facts.st_gid)
        os.chmod(upper, facts.st_mode & 0o7777)
        os.fchdir(fd)
        # a renamed folder of the lower layer needs redirect_dir, which the kernel gives to real root only
        more = "userxattr" if self.userns else "redirect_dir=on"
        mount("overlay", path, "overlay", 0, f"lowerdir=.,upperdir={upper},workdir={work},{more}")
        self.covered.add(path)

    def cover(self, fd: int, path: str) -> None:
        """Cover ``path``, or else its folders one by one where a mount point in it forbids that to users."""
        try:
            self.overlay(fd, path)
        except OSError as err:
            self.why[path] = err.strerror or str(err)
            if any(point != path and inside(point, path) for point in self.nested):
                self.cover_children(path)

    def cover_children(self, path: str) -> None:
        try:
            children = [e.path for e in os.scandir(path) if e.is_dir(follow_symlinks=False)]
        except PermissionError:
            return
        for child in children:
            if child not in self.nested:
                fd = os.open(child, os.O_PATH | os.O_NOFOLLOW)
                self.cover(fd, child)
                os.close(fd)

    def cover_all(self) -> None:
        """Cover what can be covered, put back the mounts that a cover hides, and make everything else read-only."""
        opened = []
        for path in self.targets():
            try:
                fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
                is_folder = (os.fstat(fd).st_mode & 0o170000) == 0o040000
                opened.append((path, fd, is_folder))
            except OSError as err:  # a dead network mount, a folder of somebody else
                self.why[path] = err.strerror or str(err)
        read_only = ["/"]
        for path, fd, is_folder in opened:
            hidden = any(inside(path, top) for top in self.covered)
            tree = clone_tree(fd) if hidden else -1
            if is_folder:
                self.cover(fd, path)
            if path not in self.covered and path in self.nested:
                if hidden:
                    attach(tree, path)
                read_only.append(path)
            if tree >= 0:
                os.close(tree)
        for path in read_only:
            flags = self.mounts[path][1] if path in self.mounts else 0
            mount("none", path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)

    def problem(self, path: str) -> str | None:
        """Why writes to ``path`` would not be caught in a layer, or None."""
        path = os.path.realpath(path)
        holders = [p for p in (*self.covered, *self.mounts) if inside(path, p)]
        holder = max(holders, key=len, default="/")
        if holder in self.covered:
            return None
        if is_left_alone(path):
            return f"{path} lies in {'/' + path.split('/')[1]}, which stays real"
        reasons = [f"{p}: {why}" for p, why in self.why.items() if inside(path, p) or inside(p, path)]
        return f"{path} cannot be covered ({'; '.join(reasons) or 'it lies directly in /'})"


def make_layers(*, userns: bool, keep: list[str], scratch: str | None, size: int, needed: list[str]) -> Layers:
    """Cover the file system; raises Impossible when writes to a folder in ``needed`` would not be caught.

    To be called in namespaces of our own. ``scratch``: a folder for the layers in place of a tmpfs of ``size`` bytes.
    """
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    writable = [f for f in needed if os.path.isdir(f) and os.access(f, os.W_OK)]
    layers = Layers(userns, writable)
    real = sorted(os.path.realpath(path) for path in keep)
    kept = [(path, clone_tree(os.open(path, os.O_PATH | os.O_CLOEXEC))) for path in real]
    if scratch:
        mount(scratch, WORK, None, MS_BIND)
    else:
        mount("tmpfs", WORK, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=755")
    layers.cover_all()
    for path, tree in kept:
        attach(tree, path)
    call("unmount", libc.umount2(WORK.encode(), MNT_DETACH))
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError as err:
        if err.errno != errno.EPERM:  # a container with a masked /proc: the old one works, with other process ids
            raise
    for folder in layers.writable:
        if not any(inside(folder, path) for path in real):
            problem = layers.problem(folder) or try_write(folder)
            if problem:
                raise Impossible(problem)
    return layers


def try_write(folder: str) -> str | None:
    """Make and remove a file in a covered folder; what was in the way, or None."""
    name = os.path.join(folder, f".hotlap-{os.urandom(6).hex()}")
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(name)
    except OSError as err:
        return f"{folder} cannot be written in its layer: {err.strerror}"
    return None

"""The launcher: runs a command where its writes go to a throw-away layer, and takes its whole tree along when it goes.

Run as a file (``python -I -S enter.py OPTIONS -- COMMAND``): standard library only, so that neither the user's
PYTHONPATH nor a sitecustomize is loaded here. argv, environment, folder and open files of COMMAND are unchanged.

``--mode root|userns``: in a private mount namespace every real folder at the top of ``/`` and every real mount point is
covered by an overlay; what cannot be covered becomes read-only; ``--keep PATH`` stays real. A process of ours is init
of a process namespace, so that daemons end with the command. ``--mode plain``: no namespaces, only the tree is kept.

Exit status: the command's own (also when a signal ended it); 125 and one line ``hotlap sandbox: ...`` on stderr when
the sandbox could not be made; 127 when the command cannot be started.
"""

import argparse
import ctypes
import importlib
import os
import resource
import select
import signal
import sys
import tempfile
from typing import NoReturn

FAILED, NOT_FOUND = 125, 127
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

libc = ctypes.CDLL(None, use_errno=True)


def checked(what: str, result: int) -> None:
    """Turn a C call's -1 into an OSError that says what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent(parent: int, host: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process when its parent ends, also by kill -9; too late when Hotlap is gone already."""
    checked("prctl", libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0))
    if os.getppid() != parent or (host and not os.path.exists(f"/proc/{host}")):
        os._exit(FAILED)


def start(command: list[str], cwd: str) -> int:
    """Fork and exec the command; signal settings that Python changed are put back first."""
    pid = os.fork()
    if pid:
        return pid
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(cwd)
        os.execvp(command[0], command)
    except OSError as err:
        os.write(2, f"hotlap: cannot start {command[0]}: {err.strerror}\n".encode())
        os._exit(NOT_FOUND)


def wait_for(pid: int) -> int:
    """Reap whatever ends until ``pid`` does; its wait status."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status


def leave(status: int) -> NoReturn:
    """End as the command ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def refuse(why: object) -> NoReturn:
    """Say in one line why there is no sandbox."""
    os.write(2, f"hotlap sandbox: {why}\n".encode())
    os._exit(FAILED)


def new_namespaces(userns: bool) -> None:
    """Own mounts and processes; as a user, own privileges too, with unchanged user and group ids."""
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if userns else 0)
    checked("namespaces", libc.unshare(flags))
    if userns:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as out:
                out.write(text)


def run_sandboxed(options: argparse.Namespace) -> NoReturn:
    """Namespaces, then an init that covers the file system, then the command."""
    layers = importlib.import_module("layers")
    cwd, parent = os.getcwd(), os.getppid()
    needed = [cwd, os.environ.get("HOME", ""), os.environ.get("TMPDIR") or "/tmp", *options.need]
    if options.no_folders:
        needed = ["", "", ""]
    if tempfile.gettempdir().startswith("/dev/shm"):
        needed[2] = ""  # shared memory stays real: files there are temporary by their nature
    try:
        new_namespaces(options.mode == "userns")
    except OSError as err:
        refuse(err)
    die_with_parent(parent, options.host)  # after the user namespace: a change of credentials clears it
    result, into = os.pipe()
    init = os.fork()
    if init:
        os.close(into)
        _, status = os.waitpid(init, 0)
        told = os.read(result, 16)
        leave(int(told) if told else status)
    os.close(result)
    checked("prctl", libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))
    launcher = select.poll()
    launcher.register(into, 0)
    if launcher.poll(0):  # nobody reads any more: the launcher was killed before the kernel knew whom to end with it
        os._exit(FAILED)
    if os.getpid() != 1:
        refuse("this kernel gave no process namespace")
    try:
        covered = layers.make_layers(
            userns=options.mode == "userns",
            keep=options.keep,
            scratch=options.scratch,
            size=options.size,
            needed=needed,
        )
        for file, new in options.replace:
            stand_in = importlib.import_module("stand_in")
            stand_in.put(covered, os.path.realpath(file), new, [os.path.realpath(path) for path in options.keep])
    except (OSError, layers.Impossible) as err:
        refuse(err)
    if not options.command:
        os._exit(0)
    os.chdir(cwd)
    status = wait_for(start(options.command, cwd))
    os.write(into, str(status).encode())
    os._exit(0)


def kill_tree() -> None:
    """Plain mode: end every descendant; new ones are looked for until none is left."""
    own = os.getpid()
    for _ in range(1000):
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    fields = stat.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
        below: set[int] = set()
        while grown := {pid for pid, parent in parents.items() if parent in below | {own}} - below:
            below |= grown
        for pid in below:
            os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def run_plain(options: argparse.Namespace) -> NoReturn:
    """No sandbox: orphans of the command become ours, and end with it, or when Hotlap ends."""
    checked("prctl", libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))

    def on_end(*_: object) -> None:
        kill_tree()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, on_end)
    die_with_parent(os.getppid(), options.host, signal.SIGTERM)
    status = wait_for(start(options.command, os.getcwd()))
    kill_tree()
    leave(status)


def main() -> NoReturn:
    """Read the options and go."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("root", "userns", "plain"), required=True)
    parser.add_argument("--host", type=int, default=0, help="process id of Hotlap")
    parser.add_argument("--keep", action="append", default=[])
    parser.add_argument("--need", action="append", default=[])
    parser.add_argument("--replace", action="append", nargs=2, default=[], help="FILE NEW: its text in the sandbox")
    parser.add_argument("--no-folders", action="store_true", help="only try: no folder has to be writable")
    parser.add_argument("--scratch")
    parser.add_argument("--size", type=int, default=256 << 20)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        del options.command[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if options.mode == "plain":
        run_plain(options)
    run_sandboxed(options)


if __name__ == "__main__":
    main()

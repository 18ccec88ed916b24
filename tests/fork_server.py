"""Python processes that have imported torch already: each script of a test is a fork of one, seconds sooner."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["ForkServer"]


class ForkServer:
    """Started at its first script; it never computes itself, so that a fork finds one thread."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._requests: IO[str]
        self._answers: IO[str]

    def run(
        self, script: Path, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Like ``subprocess.run([python, script, ...])`` with output captured. Raises TimeoutExpired."""
        if self._server is None:
            self._start()
        argv, out, err = [str(script), *arguments], script.with_suffix(".out"), script.with_suffix(".err")
        request = {"argv": argv, "cwd": str(cwd), "env": dict(env), "out": str(out), "err": str(err)}
        self._requests.write(json.dumps(request | {"timeout_s": timeout_s}) + "\n")
        self._requests.flush()
        code = json.loads(self._answers.readline())
        if code is None:
            raise subprocess.TimeoutExpired(argv, timeout_s, out.read_bytes(), err.read_bytes())
        return subprocess.CompletedProcess(argv, code, out.read_text(), err.read_text())

    def _start(self) -> None:
        (asked, ask), (answered, answer) = os.pipe(), os.pipe()
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(asked), str(answer)], stdin=subprocess.DEVNULL, pass_fds=(asked, answer),
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        os.close(asked)
        os.close(answer)
        self._requests, self._answers = open(ask, "w"), open(answered)  # noqa: SIM115 - until close

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._requests.close()
            self._server.wait()
            self._answers.close()


def _serve(requests: int, answers: int) -> dict[str, Any] | None:
    """Fork for each request. Returns the request in a child, None in the server, at its end."""
    with open(requests) as asked, open(answers, "w") as answering:
        for line in asked:
            request: dict[str, Any] = json.loads(line)
            child = os.fork()
            if child == 0:
                return request
            answering.write(json.dumps(_ended(child, request["timeout_s"])) + "\n")
            answering.flush()
    return None


def _ended(child: int, timeout_s: float) -> int | None:
    """The child's exit code as subprocess has it; None when it had to be killed, with all that it started."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _become(request: dict[str, Any]) -> None:
    """In the child: run the script as ``__main__``; the interpreter ends as it does behind any script."""
    os.setpgid(0, 0)
    atexit.register(gc.freeze)  # the last of all: or the interpreter collects all of torch once more, for a second
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    path = request["argv"][0]
    sys.argv[:], sys.path[0] = request["argv"], os.path.dirname(path)
    code = compile(Path(path).read_text(), path, "exec")
    names = vars(sys.modules["__main__"])
    fresh = {name: names[name] for name in ("__name__", "__builtins__", "__loader__")}
    names.clear()
    names.update(fresh, __file__=path, __spec__=None, __doc__=None, __cached__=None)
    exec(code, names)


if __name__ == "__main__":
    import torch._dynamo  # noqa: F401 - what an optimizer imports at its first step

    asked_for = _serve(int(sys.argv[1]), int(sys.argv[2]))
    if asked_for is not None:
        _become(asked_for)

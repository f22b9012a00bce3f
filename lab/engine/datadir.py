"""Where the embedded Postgres keeps its files, and how they are made.

`folder()` holds the lock and `server.json`, which names the data directory in use and its password;
any other data directory is what a killed command left of an initdb, and goes when the next one is
made. The data are a throw-away, so they lie in memory where Linux offers it: a database is some 300
files, and making those takes a disk five times as long.
"""

import getpass
import hashlib
import json
import os
import platform
import secrets
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.engine import programs
from lab.errors import LabError

NAME = "lab-shared-postgres"
MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30  # bytes that must be free in memory; the server takes a tenth of it


@dataclass(frozen=True)
class State:
    """What `server.json` says: the data directory in use, its password and PostgreSQL's version."""

    data: str
    password: str
    major: str


def folder() -> Path:
    """Return the user's cache folder for the server, or a temporary one where that is unusable.

    Root gets a temporary folder, since Postgres then runs as a user who may not enter /root. The
    host's name is part of the path, because a home folder may be shared by several machines.

    Raises:
        LabError: neither can be written.
    """
    import platformdirs

    user = getpass.getuser() if os.name == "nt" else str(os.getuid())
    candidates = [Path(tempfile.gettempdir(), f"{NAME}-{user}"), Path("/var/tmp", f"{NAME}-{user}")]
    if not programs.is_root():
        with suppress(RuntimeError):  # there is no home
            candidates.insert(0, platformdirs.user_cache_path(NAME))
    for parent in candidates:
        path = parent / (platform.node() or "localhost")
        with suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for each in (parent, path):
                _make_private(each)
            if programs.can_enter(path):
                with tempfile.TemporaryFile(dir=path):
                    return path
    raise LabError(
        f"The embedded Postgres needs a folder that can be written; {candidates[0]} cannot.",
        "Set TMPDIR to a folder of yours, or DATABASE_URL to a server that is already running.",
    )


def load() -> State | None:
    """Return what `server.json` says, or None if there is no data directory."""
    with suppress(OSError, ValueError, TypeError):
        return State(**json.loads((folder() / "server.json").read_text()))
    return None


def trusted() -> Path | None:
    """Return the data directory if a server may be started on it; the server must not be running.

    Data of another major version are useless, and so are data that were in use when the machine
    went down, because they are written without fsync.
    """
    import psutil

    state = load()
    if not state or state.major != programs.major():
        return None
    data, lock = Path(state.data), Path(state.data, "postmaster.pid")
    with suppress(FileNotFoundError):
        if lock.stat().st_mtime < psutil.boot_time():
            return None
        lock.unlink()  # its process is gone, and Postgres would take another's for it
    return data if (data / "PG_VERSION").exists() else None


def make() -> Path:
    """Make a data directory with initdb, in place of any other, and return it.

    Raises:
        OSError, subprocess.SubprocessError: initdb failed.
    """
    remove()
    data = _room() / f"{_prefix()}{secrets.token_hex(4)}"
    state = State(str(data), secrets.token_hex(16), programs.major())
    password = folder() / "password"
    data.mkdir(mode=0o700)
    _write(password, state.password)
    programs.give(data)
    programs.give(password)
    try:
        programs.run(
            "initdb", f"-D{data}", "-Upostgres", "-Ascram-sha-256", f"--pwfile={password}",
            "-EUTF8", "--no-locale", "--no-sync", "-cscram_iterations=1", "-ctimezone=UTC",
            "-clog_timezone=UTC", copies=folder(),
        )  # fmt: skip
    finally:
        password.unlink()
    _write(folder() / "server.json", json.dumps(asdict(state)))
    return data


def remove() -> bool:
    """Remove all data directories; the server must be stopped. Return whether there were any."""
    (folder() / "server.json").unlink(missing_ok=True)
    places = [folder(), MEMORY] if MEMORY.is_dir() else [folder()]
    left = [path for place in places for path in place.glob(f"{_prefix()}*")]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return bool(left)


def _prefix() -> str:
    return f"{NAME}-{hashlib.sha256(str(folder()).encode()).hexdigest()[:8]}-"


def _room() -> Path:
    if sys.platform == "linux" and os.access(MEMORY, os.W_OK):
        if shutil.disk_usage(MEMORY).free >= ROOM:
            return MEMORY
    return folder()


def _make_private(path: Path) -> None:
    """Keep others out, save for root's server, which has to pass; refuse somebody else's folder."""
    if os.name != "nt":
        if path.stat().st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to somebody else")
        path.chmod(0o711 if programs.is_root() else 0o700)


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    half = path.with_suffix(".new")
    half.unlink(missing_ok=True)
    half.touch(mode=0o600, exist_ok=False)
    half.write_text(text)
    half.replace(path)

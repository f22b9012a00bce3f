"""A checkout to spoil, and commands in it whose every process can be told from all others."""

import os
import secrets
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from lab import folders

MARK = "LAB_TEST_MARK"  # in the environment of a command, and so of all that it starts
PARTS = ["lab", "docs", "notebooks", "tools", "locks", "requirements.lock", "Makefile", "LICENSE",
         "README.md", "README.es.md", "CONTRIBUTING.md", "CONTRIBUTING.es.md", "pyproject.toml"]
LITTER = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "cdk.out")


def copy_checkout(into: Path) -> Path:
    """Copy what the commands need into a new folder, and let them use this .venv."""
    into.mkdir(parents=True)
    for path in [*(folders.ROOT / name for name in PARTS), *folders.stages().values()]:
        if path.is_dir():
            shutil.copytree(path, into / path.name, ignore=LITTER)
        else:
            shutil.copy2(path, into / path.name)
    if (folders.ROOT / ".venv").is_dir():
        (into / ".venv").symlink_to(folders.ROOT / ".venv")
    return into


class Command:
    """`python -m lab …` under way, as the leader of a process group of its own.

    Attributes:
        popen: its first process.
        lines: what it has printed, as far as it was read.
    """

    def __init__(self, cwd: Path, args: list[str], env: dict[str, str], before: list[str],
                 python: str) -> None:
        self.mark = secrets.token_hex(8)
        self.words = [*before, python, "-m", "lab", *args]
        self.lines: list[str] = []
        self.popen = subprocess.Popen(
            self.words, cwd=cwd, text=True, encoding="utf-8", errors="replace",
            env=environment() | env | {MARK: self.mark}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def processes(self) -> list[psutil.Process]:
        """Its processes that are alive, the first one included, Postgres' own excluded."""
        return [process for process in marked(self.mark) if not serves_postgres(process)]

    def children(self) -> list[psutil.Process]:
        """What it has started and is still its own, which is cheap to ask."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.popen.pid).children(recursive=True)
        return []

    def read_lines(self, count: int) -> bool:
        """Read on to the count-th line of its output; False if it ended before."""
        while len(self.lines) < count and (line := self.popen.stdout.readline()):
            self.lines.append(line)
        return len(self.lines) >= count

    def send(self, number: int) -> None:
        """Send a signal to all of its process group, as Ctrl-C in a terminal does."""
        os.killpg(self.popen.pid, number)

    def end(self, seconds: float = 60) -> tuple[int, str, str]:
        """Wait until it has ended; returns its exit code, and all that it printed."""
        out, errors = self.popen.communicate(timeout=seconds)
        return self.popen.returncode, "".join(self.lines) + out, errors


@contextmanager
def command(cwd: Path, *args: str, before: list[str] | None = None, python: str = sys.executable,
            **env: str):
    """Start `python -m lab ARGS`; whatever is left of it at the end of the block is killed.

    Args:
        cwd: the checkout.
        args: of the command line.
        before: what goes before it, such as ["setpriv", …].
        python: what runs it.
        env: more environment.
    """
    started = Command(cwd, list(args), env, before or [], python)
    try:
        yield started
    finally:
        for process in marked(started.mark):
            with suppress(psutil.Error):
                process.kill()
        with suppress(ValueError):  # it was read to its end
            started.popen.communicate()


def done(cwd: Path, *args: str, seconds: float = 60, **how) -> tuple[int, str, str]:
    """Run a command to its end; returns its exit code, its output and its errors."""
    with command(cwd, *args, **how) as running:
        return running.end(seconds)


def environment() -> dict[str, str]:
    """This process's environment, in which Python may keep byte code and prints at once."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "COLUMNS": "100"}


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that have a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.environ().get(MARK) == mark:
                found.append(process)
    return found


def serves_postgres(process: psutil.Process) -> bool:
    """Whether it belongs to the embedded server, which has a life of its own."""
    with suppress(psutil.Error):
        return Path(process.exe()).name in ("postgres", "pg_ctl", "initdb")
    return True  # it has ended

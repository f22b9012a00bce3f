"""Processes that run a library's own scheduler, on the real clock: started, held, killed, frozen.

The lab cannot set such a library's clock. So it makes a slot due a few real seconds ahead, in the
library's own notation, and holds the work at its first write with a lock on that table.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg

from lab.engine import scratch
from lab.engine.launch import launched
from lab.engine.postgres import Database
from lab.errors import LabError
from lab.folders import ROOT

__all__ = ["Crew", "Late", "NotRun", "Stopped"]

LIMIT = 60.0  # real seconds for a process to start, on a busy machine
INCIDENT = "2026-05-29T18:00:00-06:00"  # what the community's clock shows when the job runs


class NotRun(Exception):
    """A library could not be started; the message is its reason."""


class Stopped(Exception):
    """The crew was told to stop before it was done."""


class Late(Exception):
    """The processes were not ready when the slot came: the run says nothing, try with more time."""


class Crew:
    """Processes of one script on one database.

    Args:
        database: the run's own database.
        script: the library's file.
        slot: real time (aware) of the slot that is to come due.
        close_at: that time as the script reads it from CLOSE_AT.
        urls: name -> DATABASE_URL, for processes that go through a gate.
        stop: once it is set, whatever waits here ends with Stopped.

    Use as a context manager: leaving it kills every process it started.
    """

    def __init__(self, database: Database, script: Path, slot: datetime, close_at: str,
                 urls: Mapping[str, str] | None = None,
                 stop: threading.Event | None = None) -> None:
        self.stop = stop or threading.Event()
        self.database, self.script, self.slot, self.close_at = database, script, slot, close_at
        self.urls = urls or {}
        self.processes: dict[str, subprocess.Popen] = {}
        self._started: list[subprocess.Popen] = []
        self._folder = scratch.folder()
        self.monitor = database.connect()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
            process.wait()
        self.monitor.close()
        self._folder.cleanup()

    def setup(self) -> None:
        """Let the library make its tables.

        Raises:
            NotRun: it ended in an error.
        """
        process = self._spawn("setup", "setup")
        if not self.wait_for(lambda: process.poll() is not None, LIMIT):
            raise NotRun(f"its set-up did not end within {LIMIT:.0f} s")
        if process.returncode:
            raise NotRun(self._last_words("setup"))

    def start(self, *names: str) -> None:
        """Start processes, without waiting for them."""
        for name in names:
            self.processes[name] = self._spawn(name)

    def ready(self, before: datetime | None = None) -> None:
        """Wait until every process has said that it is ready.

        Raises:
            NotRun: one has ended instead.
            Late: they were not ready one second before that time.
        """
        deadline = time.monotonic() + LIMIT
        while waiting := self.not_ready():
            if any(self.processes[name].poll() is not None for name in waiting):
                raise NotRun(self._last_words(waiting[0]))
            if time.monotonic() > deadline:
                raise NotRun(f"it was not ready within {LIMIT:.0f} s")
            self.pause(0.05)
        if before and datetime.now(before.tzinfo) > before - timedelta(seconds=1):
            raise Late

    def not_ready(self) -> list[str]:
        """The processes that have not said that they are ready."""
        return [name for name in self.processes
                if "ready" not in self._log(name).read_text("utf-8", "replace")]

    def kill(self, *names: str) -> None:
        """SIGKILL."""
        for name in names:
            process = self.processes.pop(name)
            process.kill()
            process.wait()

    def freeze(self, name: str) -> None:
        """SIGSTOP."""
        psutil.Process(self.processes[name].pid).suspend()

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        psutil.Process(self.processes[name].pid).resume()

    @contextmanager
    def held(self, table: str) -> Iterator[psycopg.Connection]:
        """Nobody writes into the table while this lasts; commit the connection to let them."""
        with psycopg.connect(self.database.url, application_name="lab") as conn:
            conn.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            yield conn

    def at_work(self, table: str) -> list[str]:
        """The processes whose job waits for that table, in order of their names."""
        rows = self.monitor.execute("""
            SELECT DISTINCT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE NOT granted AND relation = %s::regclass AND datname = current_database()
            ORDER BY 1""", (table,))
        return [name for (name,) in rows if name in self.processes]

    def busy(self) -> list[str]:
        """The processes that are in a transaction and wait for nobody, in order of their names."""
        rows = self.monitor.execute("""
            SELECT DISTINCT application_name FROM pg_stat_activity
            WHERE datname = current_database() AND xact_start IS NOT NULL
            AND cardinality(pg_blocking_pids(pid)) = 0 ORDER BY 1""")
        return [name for (name,) in rows if name in self.processes]

    def wait_for(self, holds: Callable[[], Any], limit: float) -> Any:
        """What `holds` gives once it is true, or when `limit` real seconds are over."""
        deadline = time.monotonic() + limit
        while not (value := holds()) and time.monotonic() < deadline:
            self.pause(0.05)
        return value

    def pause(self, seconds: float) -> None:
        """Let so many real seconds pass: the libraries go by real time.

        Raises:
            Stopped: the crew was told to stop.
        """
        if self.stop.wait(seconds):
            raise Stopped

    def _log(self, name: str) -> Path:
        return Path(self._folder.name) / f"{name}.log"

    def _last_words(self, name: str) -> str:
        said = self._log(name).read_text("utf-8", "replace")
        lines = [line for line in said.splitlines() if line]
        return lines[-1].strip() if lines else "it ended without a word"

    def _spawn(self, name: str, *arguments: str) -> subprocess.Popen:
        # A time zone far from both UTC and Mexico City: a library that reads the machine's is seen.
        env = os.environ | {
            "DATABASE_URL": self.urls.get(name, self.database.url), "PGAPPNAME": name,
            "HOSTNAME": name, "CLOSE_AT": self.close_at, "LAB_CLOCK": INCIDENT,
            "TZ": "Asia/Tokyo", "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)}
        try:
            with self._log(name).open("wb") as log:
                process = subprocess.Popen(
                    launched(self.script, *arguments), cwd=self.script.parent, env=env,
                    stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
        except OSError as error:
            raise LabError(f"A process could not be started: {error.strerror}.",
                           "Close other programs or raise the limit (ulimit -u).") from error
        self._started.append(process)
        return process

"""A rush: many buyers at once in one real process, and what Postgres says of its connections.

Nothing is stepped. The process runs a stage's own script, and pg_stat_activity is looked at until
it ends (PostgreSQL documentation, "The Cumulative Statistics System").
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.engine.launch import launched
from lab.engine.postgres import Database
from lab.errors import LabError
from lab.folders import ROOT

__all__ = ["Rush", "Sample", "rush"]

EVERY = 0.02  # seconds between two looks: a push of 0.1 s is seen five times
STATES = """
SELECT count(*) FILTER (WHERE state LIKE 'idle in transaction%%'),
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Lock')
FROM pg_stat_activity WHERE datname = current_database() AND pid <> ALL (%s)
"""


@dataclass(frozen=True)
class Sample:
    """One look: seconds since the start, connections idle in a transaction, waiting for a lock."""

    at: float
    idle: int
    waiting: int


@dataclass(frozen=True)
class Rush:
    """What was seen.

    Args:
        connected: for each buyer, seconds from the start until it had a connection.
        done: for each buyer, seconds from the start until it was done.
        samples: the looks at pg_stat_activity, in order.
    """

    connected: list[float]
    done: list[float]
    samples: list[Sample]

    @property
    def seconds(self) -> float:
        """How long the whole rush took."""
        return max(self.done)

    @property
    def rate(self) -> float:
        """Purchases a second."""
        return len(self.done) / self.seconds

    @property
    def idle_seconds(self) -> float:
        """Connection-seconds spent idle in a transaction."""
        ends = [*(sample.at for sample in self.samples[1:]), self.seconds]
        return sum(sample.idle * (end - sample.at)
                   for sample, end in zip(self.samples, ends, strict=False))

    def queued(self, at: float) -> int:
        """How many buyers had no connection yet, that many seconds after the start."""
        return sum(connected > at for connected in self.connected)


def rush(database: Database, script: Path, arguments: Sequence[str], ntfy_url: str) -> Rush:
    """Run the script and look on.

    Args:
        database: the run's own database.
        script: prints "rush started", and a line of JSON for each buyer at its end.
        arguments: of the script.
        ntfy_url: the push server.

    Raises:
        LabError: the script failed; it says what was printed last.
    """
    env = os.environ | {"DATABASE_URL": database.url, "NTFY_URL": ntfy_url, "PYTHONUTF8": "1",
                        "PYTHONPATH": str(ROOT)}
    env.pop("LAB_CLOCK", None)
    command = launched(script, *arguments)
    samples = []
    with database.connect() as conn, subprocess.Popen(
            command, cwd=script.parent, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8") as process:
        mine = [pid for pid, in conn.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name <> '' OR pid = pg_backend_pid()")]
        first = process.stdout.readline()
        began = time.perf_counter()
        while process.poll() is None:
            samples.append(Sample(time.perf_counter() - began,
                                  *conn.execute(STATES, (mine,)).fetchone()))
            try:
                process.wait(EVERY)
            except subprocess.TimeoutExpired:
                continue
        lines = process.stdout.read().splitlines()
    if process.returncode or first != "rush started\n":
        raise LabError(f"{script.name} failed: {[first, *lines][-1] or 'it printed nothing'}",
                       f"Run {script.parent.name}/{script.name} by hand to see why.", code=1)
    buyers = [json.loads(line) for line in lines]
    end = max(buyer["done"] for buyer in buyers)
    return Rush([buyer["connected"] for buyer in buyers], [buyer["done"] for buyer in buyers],
                [sample for sample in samples if sample.at <= end])

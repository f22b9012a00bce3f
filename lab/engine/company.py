"""The replicas of a run from its beginning: their processes, their database, their clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Self

import psycopg

from lab.engine.postgres import Database
from lab.engine.recorder import Recorder
from lab.engine.replica import IMPORTS, Program, Replica, Stable
from lab.engine.rest import Rest
from lab.engine.sessions import Sessions
from lab.engine.wire import Gate
from lab.errors import LabError
from lab.world.clock import MX, SharedClock

__all__ = ["INCIDENT", "Company"]

INCIDENT = datetime(2026, 5, 29, 18, tzinfo=MX)


class Company(Rest):
    """A database, its gate, and one warm process per replica.

    Args:
        database: the run's own database; `reset` brings it back to what it holds now.
        folder: the stage folder.
        programs: replica letter -> what it runs.
        start: world time at which every run begins (aware).
        spares: warm processes kept ready to replace killed ones.
        env: more environment for the replicas.
        servers: HTTP and Redis servers, requests to which are steps, too: environment variable ->
            URL. Replicas find the gate's address in the variable; those to NTFY_URL read "POST
            http://ntfy/…", those to REDIS_URL "GET redis://…".
        imports: modules that every process imports before its first run.

    Use as a context manager: leaving it kills every process it started.
    """

    def __init__(self, database: Database, folder: Path, programs: Mapping[str, Program],
                 start: datetime = INCIDENT, spares: int = 0,
                 env: Mapping[str, str] | None = None,
                 servers: Mapping[str, str] | None = None,
                 imports: Sequence[str] = IMPORTS) -> None:
        self.database, self.folder, self.start_time = database, folder, start
        self.env, self.servers = dict(env or {}), dict(servers or {})
        self.conditions: dict[str, list[str]] = {}
        self.named: Mapping[str, list[str]] = {}  # conditions of the stage's own, for schedules
        self.on_reset: Callable[[], None] = lambda: None
        # What is not in Postgres: changes to it by condition, and what a move of the clock ends.
        self.outside: Mapping[str, Callable[[], None]] = {}
        self.on_clock: Callable[[float], Sequence[str]] = lambda seconds: ()
        self._company: dict[str, Replica] = {}
        super().__init__(Gate(database.url), {}, database.connect(), start)
        self.sessions = Sessions(self.gate, self.waits, database.name)
        self.stable = Stable(self.gate, spares, imports)
        self.clock = SharedClock(self.stable.folder / "clock")
        self.clock.set(start, 0)
        self.cast(programs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the processes, close the sockets. The database is its owner's to drop."""
        with suppress(Exception):
            self.monitor.close()
        self.stable.close()
        self.gate.close()

    # A run, from its beginning

    def reset(self) -> None:
        """Back to the beginning: seed rows, clock, empty history, every replica alive and idle."""
        self.drain()
        self._tidy()
        self.sessions.new_run()
        for replica in self.replicas.values():
            replica.forget_run()
            if replica.dead or not replica.process.alive:
                self._give_process(replica)
        self.database.reset()
        self.on_reset()
        for link in self.gate.links:
            link.beyond_read_committed -= {"transaction"}
        if self.now != self.start_time:
            self.clock.set(self.start_time, 0)
        self.record = Recorder(self.start_time)
        self._done.clear()
        for name, statements in self.conditions.items():
            self.condition(name, statements)

    def drain(self) -> None:
        """Let everything that is under way run to its end, unrecorded; kill what does not end."""
        self.gate.passing = True
        deadline = time.monotonic() + self.limit
        for replica in self.replicas.values():
            if replica.frozen:
                replica.process.thaw()
        for link in list(self.gate.links):
            if link.held:
                link.release()
        while waiting := [r for r in self.replicas.values() if r.under_way]:
            if not self.gate.pump(0.02):
                self._tidy()
            for replica in waiting:
                if replica.process.answers or not replica.process.alive:
                    replica.process.answers.clear()
                    replica.finished = True
                elif time.monotonic() > deadline:
                    self._lose_process(replica)
        for replica in self.replicas.values():
            while replica.ghosts:
                if time.monotonic() > deadline:
                    self.waits.terminate(replica.ghosts)
                replica.ghosts &= self.waits.alive(replica.ghosts)
        self.gate.passing = False

    @property
    def beyond_read_committed(self) -> bool:
        """Whether a transaction of this run may have a higher isolation level."""
        return any(any(link.beyond_read_committed) for link in self.gate.links)

    def renew(self) -> None:
        """New processes for the next runs: the code in the folder has changed."""
        self.drain()
        for replica in self._company.values():
            if not replica.dead:
                self._lose_process(replica)

    def _tidy(self) -> None:
        """Take from idle sessions what would outlast the run: open transactions, advisory locks."""
        self.sessions.let_go()
        for replica in self.replicas.values():
            if not (replica.under_way or replica.dead) and any(
                    link.status != "I" for link in self.gate.of(replica.letter)):
                self._lose_process(replica)

    def cast(self, programs: Mapping[str, Program],
             conditions: Mapping[str, list[str]] | None = None) -> None:
        """Give out the parts for the next runs. Processes that are there already are kept.

        Args:
            programs: replica letter -> what it runs.
            conditions: changes to the world, name -> SQL, that every reset makes.
        """
        self.drain()
        for letter, program in programs.items():
            self._company.setdefault(letter, Replica(letter, program)).program = program
        self.replicas.clear()
        self.replicas.update({letter: self._company[letter] for letter in programs})
        self.conditions = dict(conditions or {})

    def _give_process(self, replica: Replica) -> None:
        env = {"DATABASE_URL": self.gate.database_url(replica.letter), "LAB_SLEEP": "skip",
               "LAB_CLOCK": f"file:{self.clock.path}", **self.env}
        for name, url in self.servers.items():
            server = name.removesuffix("_URL").lower()
            env[name] = self.gate.outside_url(replica.letter, url, server)
        replica.process = self.stable.take(self.folder, env)

    def _lose_process(self, replica: Replica) -> None:
        process, replica.process = replica.process, None
        process.kill()
        replica.frozen, replica.moved, replica.waiting_seq = False, None, None
        for link in self.gate.of(replica.letter):
            link.close()

    def set_clock(self, when: datetime) -> None:
        """Set the world's time for every replica (aware)."""
        passed = (when - self.now).total_seconds()
        self.record.now = when.astimezone(MX)
        self.clock.set(self.now, 0)
        self.record.note("", "clock", f"{self.now:%a %d %b %H:%M}")
        for ended in self.on_clock(passed):
            self.record.note("", "expiry", ended)

    def condition(self, name: str, statements: list[str]) -> None:
        """Change the world's rows as an operator would, outside every replica."""
        try:
            for statement in statements:
                self.monitor.execute(statement)
        except psycopg.errors.UndefinedTable as error:
            raise LabError(f"+{name} changes what is not there: {error.diag.message_primary}.",
                           "It is a change to the community's tables.") from error
        if name in self.outside:
            self.outside[name]()
        self.record.note("", "condition", f"+{name}")

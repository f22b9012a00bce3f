"""When the world is at rest, and what is written down then.

At rest, every replica is held at a statement, waiting for a lock that another one has, frozen,
finished or dead. Whether a backend waits is what Postgres says, never a guess from elapsed time.
"""

from __future__ import annotations

import math
import re
import time
from datetime import datetime

import psycopg

from lab.engine.history import History, label
from lab.engine.link import Link, Step
from lab.engine.recorder import Recorder
from lab.engine.replica import Replica
from lab.engine.waits import Waits
from lab.engine.wire import Gate
from lab.errors import LabError

__all__ = ["Rest"]

START_LIMIT = 60.0  # seconds that its process may take to start, on a busy machine
LIMIT = 10.0  # seconds that a replica may take to come to rest: DESIGN section 4


class Rest:
    """The replicas of a run, watched until nothing moves.

    Args:
        gate: all of their connections.
        replicas: letter -> replica.
        monitor: an autocommit connection of the bench's own, past the gate.
        now: the world's time.

    `limit` is how many seconds a replica may take to come to rest; `until` is the moment of the
    monotonic clock at which no run may be under way any more.
    """

    limit = LIMIT
    until = math.inf

    def __init__(self, gate: Gate, replicas: dict[str, Replica], monitor: psycopg.Connection,
                 now: datetime) -> None:
        self.gate, self.replicas, self.monitor = gate, replicas, monitor
        self.waits = Waits(monitor)
        self.record = Recorder(now)
        self._done: list[tuple[Link, Step]] = []
        gate.on_done, gate.on_close = self._step_done, self._closed

    @property
    def history(self) -> History:
        """The record of the run under way."""
        return self.record.history

    @property
    def now(self) -> datetime:
        """The world's time."""
        return self.record.now

    def settle(self, mover: str = "") -> None:
        """Wait until the world is at rest, then write down what happened.

        Args:
            mover: the replica that was moved; its events come first.

        Raises:
            LabError: a replica is not at rest within the limit, its process ended by itself, its
                code cannot be run at all, or it sent what is no message of Postgres's protocol.
        """
        waited = {r.letter for r in self.replicas.values() if r.waits_for}
        self._nobody_waits()
        began = time.monotonic()
        deadline = min(began + self.limit, self.until)
        while True:
            busy = [r for r in self.replicas.values() if not self._at_rest(r)]
            asking = [r for r in busy if r.ghosts
                      or any(link.running for link in self.gate.of(r.letter))]
            known = not busy or (asking and all(r.letter in waited for r in busy))
            if self.gate.pump(0 if known else 0.002 if asking else 0.05):
                self._nobody_waits()  # what came may be the end of what somebody waited for
            elif not busy:
                break
            else:
                if asking:
                    self._ask_who_waits(asking)
                for replica in busy:
                    self._check_alive(replica)
            if self.gate.odd or time.monotonic() > deadline:
                deadline = self._extended(busy, began)
        self._write_down(mover)

    def _nobody_waits(self) -> None:
        for replica in self.replicas.values():
            replica.waits_for = ()

    def _extended(self, busy: list[Replica], began: float) -> float:
        """The deadline of those who have just started; an error for the others."""
        if self.gate.odd:
            raise LabError(f"{self.gate.odd}.\n{self.situation()}",
                           "Only clients of Postgres may connect to DATABASE_URL.", code=1)
        starting = any(r.process and not r.process.ready for r in busy)
        if starting:  # what a run may take is counted from when its processes are there
            self.until = max(self.until, time.monotonic() + self.limit)
        if time.monotonic() > self.until:
            raise LabError(f"Time is up, and the run is not over.\n{self.situation()}",
                           "Look for a loop that never ends.", code=1)
        limit = max(self.limit, START_LIMIT) if starting else self.limit
        since = max([began, *(r.process.ready_since for r in busy if r.process)])
        if time.monotonic() < since + limit:
            return min(since + limit, self.until)
        names = " and ".join(r.letter for r in busy)
        raise LabError(f"Replica {names} did not come to rest within {limit:.0f} s.\n"
                       f"{self.situation()}",
                       "Look for an endless loop, or a wait for something outside Postgres.",
                       code=1)

    def possible(self) -> list[str]:
        """The letters that can take a step now, in order."""
        return [letter for letter, replica in self.replicas.items()
                if not replica.frozen and self.held_step(letter)]

    def held_step(self, letter: str) -> Step | None:
        """The statement that the replica would execute next."""
        return next((link.held for link in self.gate.of(letter) if link.held), None)

    def state(self, letter: str) -> str:
        """What a replica is doing, in a few words."""
        replica = self.replicas[letter]
        if replica.dead:
            return "dead"
        if replica.frozen:
            return "frozen"
        if step := self.held_step(letter):
            return f"held at {label(step.text)}"
        if replica.waits_for:
            return f"waiting for {', '.join(replica.waits_for)}"
        if not replica.started or replica.finished:
            return "finished" if replica.finished else "not started"
        running = [label(link.running.text) for link in self.gate.of(letter) if link.running]
        return f"running {running[0]}" if running else "running its own code"

    def situation(self) -> str:
        """The state of every replica, a line each."""
        return "\n".join(f"  {letter}: {self.state(letter)}" for letter in self.replicas)

    @property
    def over(self) -> bool:
        """Whether every run that was begun has ended, and no broken connection lingers."""
        return not any(r.under_way or r.ghosts for r in self.replicas.values())

    def _at_rest(self, replica: Replica) -> bool:
        if replica.ghosts and not replica.waits_for:
            return False
        if replica.frozen or not replica.under_way or replica.process.answers:
            return True
        links = self.gate.of(replica.letter)
        if any(link.running for link in links):
            return bool(replica.waits_for)
        return any(link.held for link in links)

    def _ask_who_waits(self, replicas: list[Replica]) -> None:
        owners = {link.pid: link.replica for link in self.gate.links if link.pid}
        owners |= {pid: r.letter for r in self.replicas.values() for pid in r.ghosts}
        blocked = self.waits.blocked(owners)
        for replica in replicas:
            if replica.ghosts:
                replica.ghosts &= self.waits.alive(replica.ghosts)
            pids = {link.pid for link in self.gate.of(replica.letter) if link.running}
            pids |= replica.ghosts
            if pids and pids <= blocked.keys():
                letters = {owners.get(by, "?") for pid in pids for by in blocked[pid]}
                replica.waits_for = tuple(sorted(letters))

    def _check_alive(self, replica: Replica) -> None:
        if replica.dead or replica.process.alive or replica.process.answers:
            return
        self.gate.pump(0.05)  # its last words may still be on the way
        if not replica.process.answers:
            raise LabError(
                f"Replica {replica.letter} ended by itself, exit code "
                f"{replica.process.popen.returncode}: {replica.process.last_words}\n"
                f"{self.situation()}",
                "Run the stage's file by hand to see the whole error.", code=1)

    def _step_done(self, link: Link, step: Step) -> None:
        replica = self.replicas.get(link.replica)
        if replica and not replica.dead and not self.gate.passing:
            self._done.append((link, step))

    def _closed(self, link: Link) -> None:
        # Its backend may live on for a moment, with its transaction and its locks.
        if link.pid and link.replica in self.replicas:
            self.replicas[link.replica].ghosts.add(link.pid)

    def _write_down(self, mover: str) -> None:
        done, self._done = self._done, []
        for link, step in sorted(done, key=lambda d: (d[0].replica != mover, d[0].replica)):
            replica = self.replicas[link.replica]
            self.record.step(replica.letter, step, step.outcome, resumes=replica.waiting_seq)
            replica.moved = replica.waiting_seq = None
        for replica in self.replicas.values():
            if replica.moved and replica.waits_for and replica.waiting_seq is None:
                replica.waiting_seq = self.record.step(
                    replica.letter, replica.moved, "waiting", waits_for=replica.waits_for).seq
        for replica in self.replicas.values():
            if replica.under_way and not replica.frozen and replica.process.answers:
                self._end(replica, replica.process.answers.pop())

    def _end(self, replica: Replica, answer: dict) -> None:
        replica.finished = True
        if answer["end"] == "unusable":
            raise LabError(f"Replica {replica.letter} cannot run {replica.program.call}: "
                           f"{answer['message']}\n{self.situation()}",
                           _remedy(answer["message"]), code=1)
        outcome = "ok"
        if answer["end"] == "error":
            outcome = f"error: {answer['error']} {answer['message']}"
        elif answer["end"] == "exit":  # a command that says by its exit code that it failed
            outcome = f"error: exit {answer['value']}"
        self.record.note(replica.letter, "end", "end", outcome, detail={
            key: answer[key] for key in ("value", "line") if answer.get(key) not in (None, "")})


def _remedy(message: str) -> str:
    """What to do about code that cannot be run at all."""
    missing = re.search(r"No module named '(\w+)", message)
    if missing and missing[1] == "psycopg2":
        return "Let SQLAlchemy use psycopg: in the URL, postgresql+psycopg:// for postgresql://."
    if missing:
        return ("If it is a package, install it: "
                f"python3 -m pip --python .venv/bin/python install {missing[1]}")
    return "Correct its file; running it by hand shows the whole error."

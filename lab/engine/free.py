"""The free engine: replicas as operating-system processes that run the stage's own script.

Nothing holds them. They wake up by a compressed clock that all of them read, and that is set on
when none of them is at work. Their statements go through the gate only to be written down.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from lab.engine import scratch
from lab.engine.history import Event, History
from lab.engine.launch import launched
from lab.engine.link import Link, Step
from lab.engine.postgres import Database
from lab.engine.recorder import Recorder
from lab.engine.stepper import INCIDENT
from lab.engine.wire import Gate
from lab.errors import LabError
from lab.folders import ROOT
from lab.world.clock import SharedClock

__all__ = ["FreeRun"]

INTERVAL = timedelta(minutes=15)  # of the world's clock, between a worker's wake-ups
STEP = timedelta(seconds=12)  # by which the clock is set on while every replica sleeps …
PAUSE = 0.01  # … and real seconds from one step to the next
SPEED = 10.0  # world seconds in a real one otherwise; a first statement may take half a real second
TURN = timedelta(seconds=30)  # of the world, into a turn: there the clock waits for it to end …
TURN_LIMIT = 30.0  # … for at most so many real seconds
START_LIMIT = 30.0  # real seconds for a process to start, on a busy machine


class FreeRun:
    """Replicas that wake up by themselves, one minute of the world's clock after another.

    Args:
        database: the run's own database.
        folder: the stage folder; its worker.py is what every replica runs.
        replicas: how many.
        start: world time of the first wake-up (aware).
        apart: world time from one replica's start to the next one's.
        env: more environment for the replicas.
        on_event: gets each event as it happens.

    Use as a context manager: leaving it kills every process it started.
    """

    def __init__(self, database: Database, folder: Path, replicas: int = 3,
                 start: datetime = INCIDENT, apart: timedelta = timedelta(minutes=1),
                 env: Mapping[str, str] | None = None,
                 on_event: Callable[[Event], None] = lambda event: None) -> None:
        self.folder, self.start, self.apart, self.on_event = folder, start, apart, on_event
        self.letters = [chr(ord("A") + index) for index in range(replicas)]
        self.env = dict(env or {})
        self._temporary = scratch.folder()
        self.clock = SharedClock(Path(self._temporary.name) / "clock")
        self.record = Recorder(start)
        self.gate = Gate(database.url)
        self.gate.passing = True
        self.gate.on_done = self._seen
        self._lines: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()
        self._said: dict[str, str] = {}
        self._busy: set[str] = set()
        self._turns: dict[str, int] = dict.fromkeys(self.letters, 0)
        self._woke: dict[tuple[str, datetime], float] = {}
        self.processes: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> FreeRun:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.gate.close()
        self._temporary.cleanup()

    def run(self, until: timedelta = timedelta(minutes=19, seconds=30)) -> History:
        """Let every replica have its turn, and the clock go on to `until` after the start.

        Returns:
            The history, complete when every replica had its turn and none ended by itself.

        Raises:
            LabError: a replica does not start.
        """
        self.clock.set(self.start - timedelta(minutes=1), 0)
        for index, letter in enumerate(self.letters):
            self._spawn(letter, self.start + index * self.apart)
        self._until(lambda: self._said.keys() >= set(self.letters), START_LIMIT)
        self.clock.set(self.start - timedelta(seconds=5), SPEED)
        end = self.start + until
        self._until(lambda: self.now >= end, pace=lambda: self._pace(end))
        self.record.history.complete = (all(self._turns.values()) and not self._busy
                                        and all(p.poll() is None for p in self.processes.values()))
        return self.record.history

    @property
    def now(self) -> datetime:
        """The world's time."""
        return self.clock.read().now().astimezone(self.start.tzinfo)

    def _spawn(self, letter: str, wakes: datetime) -> None:
        env = os.environ | self.env | {
            "DATABASE_URL": self.gate.database_url(letter), "LAB_CLOCK": f"file:{self.clock.path}",
            "LAB_START": wakes.isoformat(), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT)}
        command = launched(self.folder / "worker.py")
        process = subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   encoding="utf-8", errors="replace")
        self.processes[letter] = process
        threading.Thread(target=self._listen, args=(letter, process), daemon=True).start()

    def _listen(self, letter: str, process: subprocess.Popen) -> None:
        for line in process.stdout:
            self._lines.put((letter, line.rstrip()))
        self._lines.put((letter, None))

    def _until(self, done: Callable[[], bool], limit: float = float("inf"),
               pace: Callable[[], None] = lambda: None) -> None:
        deadline = time.monotonic() + limit
        while not done():
            self.gate.pump(PAUSE)
            pace()
            while not self._lines.empty():
                letter, line = self._lines.get()
                begun = self._turns[letter] or letter in self._busy
                if line is None and not begun:  # what it printed may have been a traceback's start
                    raise LabError(f"Replica {letter} did not start: "
                                   f"{self._said.get(letter, 'it printed nothing')}.",
                                   f"Run {self.folder.name}/worker.py by hand to see why.", code=1)
                if line:
                    self._said[letter] = line
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(set(self.letters) - self._said.keys()))
                raise LabError(f"Replica {missing} did not start within {limit:.0f} s.",
                               "Close other programs and try again.", code=1)

    def _pace(self, end: datetime) -> None:
        """Set the clock on to what comes next if every replica sleeps; let no turn run out of time.

        It never runs fast by itself: a machine too busy to look at it would be minutes late.
        """
        clock, now = self.clock.read(), self.now
        due = {letter: self._due(letter, now) for letter in self.letters}
        at_work = [at for letter, at in due.items() if self._at_work(letter, at, now)]
        if not at_work:
            ahead = [at if at > now else at + INTERVAL for at in due.values()]
            self.clock.set(min(now + STEP, *ahead, max(end, now)), SPEED)
        elif clock.speed and now >= max(at_work) + TURN:
            self.clock.set(now, 0)

    def _at_work(self, letter: str, due: datetime, now: datetime) -> bool:
        """Whether the replica woke up at `due` and its turn has not come to an end."""
        if now < due or self._turns[letter] > self._nth(letter, due):
            return False
        since = self._woke.setdefault((letter, due), time.monotonic())
        return self.processes[letter].poll() is None and time.monotonic() - since < TURN_LIMIT

    def _due(self, letter: str, at: datetime) -> datetime:
        """The replica's last wake-up at world time `at`, or its first."""
        first = self.start + self.letters.index(letter) * self.apart
        return max(first, at - (at - first) % INTERVAL)

    def _nth(self, letter: str, due: datetime) -> int:
        """How many wake-ups the replica had before this one."""
        return (due - self.start - self.letters.index(letter) * self.apart) // INTERVAL

    def _seen(self, link: Link, step: Step) -> None:
        letter, clock = link.replica, self.clock.read()
        age = (time.monotonic() - step.released) * clock.speed
        at = (clock.now() - timedelta(seconds=age)).astimezone(self.start.tzinfo)
        if letter not in self._busy:
            self._busy.add(letter)
            self.record.now = self._due(letter, at)
            self.on_event(self.record.note(letter, "tick", "worker:tick"))
        self.record.now = at
        event = self.record.step(letter, step, step.outcome)
        self.on_event(event)
        if event.kind in ("commit", "rollback"):
            self._busy.discard(letter)
            self._turns[letter] += 1
            self.on_event(self.record.note(letter, "end", "end"))

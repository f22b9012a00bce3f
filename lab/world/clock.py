"""The wall clock of Mexico City, which can be set, compressed and shared between processes.

The environment says which clock a process reads:

- LAB_CLOCK absent: real time.
- LAB_CLOCK=2026-05-29T18:00:00-06:00: starts there when the process starts. With "*120" appended,
  120 seconds of this clock pass in one real second. A time without an offset is Mexico City's.
- LAB_CLOCK=file:/path: a clock shared by several processes, see `SharedClock`.
- LAB_START (a time as above): this process wakes up for the first time then.
- LAB_SLEEP=skip: `sleep_until` does not wait. This process's clock jumps to the time it slept
  until, and the others' stay: so the stepped engine, whose clock stands still, runs a back-off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

from lab.errors import LabError

__all__ = ["MX", "SharedClock", "every", "forget_sleep", "now", "sleep_until"]

T = TypeVar("T")

MX = ZoneInfo("America/Mexico_City")
POLL = 0.02  # real seconds until a change of a shared clock is seen; 20 ms looks immediate
PROCESS_START = time.time()
NEVER = datetime.min.replace(tzinfo=UTC)
FORMS = "Write it as 2026-05-29T18:00:00-06:00, with *120 appended for speed, or as file:/path."


_slept_until = NEVER


@dataclass(frozen=True)
class Reading:
    """World time as a function of real time: `world` at real time `epoch`, running at `speed`."""

    world: datetime
    epoch: float
    speed: float

    def now(self) -> datetime:
        """The world's time at this moment, in UTC."""
        return self.world.astimezone(UTC) + timedelta(
            seconds=(time.time() - self.epoch) * self.speed)

    def seconds_until(self, t: datetime) -> float:
        """Real seconds until this clock shows `t`; infinite while it is stopped before it."""
        missing = (t.astimezone(UTC) - self.now()).total_seconds()
        if missing <= 0:
            return 0.0
        return missing / self.speed if self.speed else float("inf")


class SharedClock:
    """A clock that several processes read from a file and one process sets.

    The file holds one line, "ISO EPOCH SPEED": the world's time at a real Unix time, and how many
    world seconds pass in a real one (0: stopped). It is replaced in one piece, and read again at
    each look, so processes follow a change in the middle of their sleep.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def set(self, t: datetime, speed: float) -> None:
        """Set the clock to `t` (aware), running `speed` world seconds a real second from now on.

        Raises:
            LabError: the file cannot be written or replaced.
        """
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            draft.write_text(f"{t.isoformat()} {time.time()!r} {speed!r}\n", encoding="utf-8")
            _patiently(lambda: draft.replace(self.path))
        except OSError as error:
            raise LabError(f"The shared clock {self.path} cannot be set: {error.strerror}.",
                           "Use a file that can be written and that nobody keeps open.") from error

    def read(self) -> Reading:
        """What the file says now.

        Raises:
            LabError: the file cannot be read, or does not hold a clock.
        """
        try:
            text = _patiently(lambda: self.path.read_text(encoding="utf-8"))
            world, epoch, speed = text.split()
            return Reading(_time(world), float(epoch), _speed(speed))
        except OSError as error:
            raise LabError(f"The shared clock {self.path} cannot be read: {error.strerror}.",
                           "Set LAB_CLOCK to a file that a clock was written to.") from error
        except ValueError as error:
            raise LabError(f"The shared clock {self.path} holds {text.strip()!r}.",
                           "Write one line to it: a time, the Unix time, the speed.") from error


class _OwnClock:
    """The clock of one process."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def read(self) -> Reading:
        return self.reading


def _patiently(action: Callable[[], T]) -> T:
    """The result of `action`, which Windows refuses while another process has the file open."""
    for _ in range(100):
        try:
            return action()
        except PermissionError:
            time.sleep(POLL / 10)
    return action()


def _time(text: str) -> datetime:
    t = datetime.fromisoformat(text)
    return t if t.tzinfo else t.replace(tzinfo=MX)


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed < float("inf"):
        raise ValueError(text)
    return speed


@cache
def _clock(setting: str) -> SharedClock | _OwnClock:
    if setting.startswith("file:"):
        return SharedClock(setting.removeprefix("file:"))
    if not setting:
        return _OwnClock(Reading(datetime.fromtimestamp(0, MX), 0.0, 1.0))
    world, _, speed = setting.partition("*")
    try:
        return _OwnClock(Reading(_time(world), PROCESS_START, _speed(speed or "1")))
    except ValueError as error:
        raise LabError(f"LAB_CLOCK is {setting!r}, which is no clock.", FORMS) from error


def _read() -> Reading:
    return _clock(os.environ.get("LAB_CLOCK", "")).read()


def _first_wake_up() -> datetime:
    text = os.environ.get("LAB_START")
    if not text:
        return now()
    try:
        return _time(text)
    except ValueError as error:
        raise LabError(f"LAB_START is {text!r}, which is no time.",
                       "Write it as 2026-05-29T18:00:00-06:00.") from error


def now() -> datetime:
    """The world's time: aware, in Mexico City.

    Raises:
        LabError: LAB_CLOCK cannot be understood, or its file cannot be read.
    """
    return max(_read().now(), _slept_until).astimezone(MX)


def forget_sleep() -> None:
    """Back to the clock as it is after sleeps that were skipped: another run begins."""
    global _slept_until
    _slept_until = NEVER


def sleep_until(t: datetime) -> None:
    """Return when the clock shows `t` (aware) or later, also if it is set or stopped meanwhile."""
    global _slept_until
    if os.environ.get("LAB_SLEEP") == "skip":
        _slept_until = max(_slept_until, t)
        return
    shared = isinstance(_clock(os.environ.get("LAB_CLOCK", "")), SharedClock)
    while (seconds := _read().seconds_until(t)) > 0:
        time.sleep(min(seconds, POLL if shared else 3600.0))


def every(minutes: int = 15) -> Iterator[datetime]:
    """The wake-ups of this process: yields the time at once, then every `minutes` of this clock.

    The count starts at this process's own start (or at LAB_START), so replicas that start one after
    another stay as far apart. Nothing is yielded before a stopped clock runs. Wake-ups that were
    missed, because the clock was set forward or the work took too long, are not made up for.
    """
    while not _read().speed:
        time.sleep(POLL)
    due, interval = _first_wake_up().astimezone(UTC), timedelta(minutes=minutes)
    while True:
        sleep_until(due)
        woke = now()
        if woke - due >= interval:
            due = woke.astimezone(UTC)
        yield woke
        due += interval

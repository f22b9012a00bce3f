"""Relays as real processes, and how fast they deliver: messages a second, and lag.

Each runs a stage's own script until every message is delivered; the push server says when each
came.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from lab.engine.launch import launched
from lab.engine.postgres import Database
from lab.errors import LabError
from lab.folders import ROOT
from lab.world.ntfy import PushServer

__all__ = ["Delivery", "deliver", "relay", "until"]

LIMIT = 120.0  # real seconds for all messages, on a busy machine


@dataclass(frozen=True)
class Delivery:
    """What relays delivered: how many messages, in how many real seconds, and the median lag."""

    messages: int
    seconds: float
    lag: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


@contextmanager
def relay(database: Database, script: Path, ntfy_url: str) -> Iterator[subprocess.Popen]:
    """A relay as a process of its own, from its first line of output on; killed at the end."""
    env = os.environ | {"DATABASE_URL": database.url, "NTFY_URL": ntfy_url, "PYTHONUTF8": "1",
                        "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    env.pop("LAB_CLOCK", None)
    command = launched(script)
    with subprocess.Popen(command, cwd=script.parent, env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          encoding="utf-8") as process:
        try:
            if not process.stdout.readline():
                raise LabError(f"{script.name} ended before it began.",
                               f"Run {script.parent.name}/{script.name} by hand to see why.", 1)
            yield process
        finally:
            process.kill()


def until(push: PushServer, count: int, limit: float = LIMIT) -> None:
    """Wait until the push server has that many messages.

    Raises:
        LabError: they did not come in time.
    """
    with push.changed:
        if not push.changed.wait_for(lambda: len(push.messages) >= count, limit):
            raise LabError(f"{len(push.messages)} of {count} messages came within {limit:.0f} s.",
                           "Look at what the relays print.", code=1)


def deliver(database: Database, script: Path, fill: str, messages: int, relays: int,
            slow: float = 0.0) -> Delivery:
    """Let relays deliver messages that are pending, and measure.

    Args:
        database: the run's own database.
        script: the relay.
        fill: SQL with one parameter, how many messages to put into the outbox.
        messages: how many.
        relays: how many processes.
        slow: real seconds that each push takes.
    """
    with PushServer() as push, ExitStack() as stack:
        push.slow = slow
        arrived: list[float] = []
        push.on_message = lambda message: arrived.append(time.perf_counter())
        for _ in range(relays):
            stack.enter_context(relay(database, script, push.url))
        with database.connect() as conn:
            conn.execute(fill, (messages,))
            began = time.perf_counter()
            conn.execute("NOTIFY outbox")
        until(push, messages)
        lags = [at - began for at in arrived]
    return Delivery(messages, max(lags), median(lags))

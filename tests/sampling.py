"""Replicas of the samples, and what a run of them left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.engine.history import History
from lab.engine.postgres import Server
from lab.engine.replica import Program
from lab.engine.stepper import Stepper

SAMPLES = Path(__file__).parent / "samples"


@contextmanager
def sampler(server: Server, **options) -> Iterator[Stepper]:
    """A stepper on a database with the samples' tables; `cast` says who runs what."""
    with server.database([SAMPLES / "schema.sql"], "samples") as database, \
            Stepper(database, SAMPLES, {}, **options) as stepper:
        yield stepper


def cast(stepper: Stepper, **programs: tuple) -> None:
    """Give out parts: A=("claim", "A") runs worker.claim("A")."""
    stepper.cast({letter: Program(f"worker:{name}" if ":" not in name else name, tuple(args))
                  for letter, (name, *args) in programs.items()})


def left(stepper: Stepper, history: History) -> str:
    """All that a run came to: how each replica ended, and every row but for generated numbers."""
    ends = sorted((e.replica, " ".join(e.outcome.split()[:2])) for e in history if e.kind == "end")
    rows = [f"{table}={[row for row, in stepper.monitor.execute(query)]}" for table, query in (
        ("claims", "SELECT name || owner FROM claims ORDER BY 1"),
        ("wallets", "SELECT id || ':' || balance FROM wallets ORDER BY 1"),
        ("spends", "SELECT wallet_id || who FROM spends ORDER BY 1"),
        ("log", "SELECT who FROM log ORDER BY 1"),
        ("seen", "SELECT who || what FROM seen ORDER BY 1"))]
    return f"{ends} {' '.join(rows)}" if history.complete else "unknown"

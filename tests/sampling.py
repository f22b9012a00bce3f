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
        ("receipts", "SELECT wallet_id || who FROM receipts ORDER BY 1"),
        ("spends", "SELECT wallet_id || who FROM spends ORDER BY 1"),
        ("log", "SELECT who FROM log ORDER BY 1"),
        ("seen", "SELECT who || what FROM seen ORDER BY 1"))]
    return f"{ends} {' '.join(rows)}" if history.complete else "unknown"


# Replica -> its program; what they come to depends on the order of their steps.
CASES: dict[str, dict[str, tuple]] = {
    "two claims on one key": {"A": ("claim", "A"), "B": ("claim", "B")},
    "a claim that is given up": {"A": ("claim", "A", True), "B": ("claim", "B")},
    "two updates in opposite order": {"A": ("move", 1, 2), "B": ("move", 2, 1)},
    "a try-lock": {"A": ("try_lock", "A"), "B": ("try_lock", "B")},
    "a lost update": {"A": ("increment",), "B": ("increment",)},
    "a lost update, refused": {"A": ("increment", 3), "B": ("increment", 3)},
    "serializable beside read committed": {"A": ("increment", 4), "B": ("increment",)},
    "one statement each": {"A": ("increment_in_place",), "B": ("increment_in_place",)},
    "a child and the end of its parent": {"A": ("spend", "A", 1), "B": ("close_wallet", 1)},
    "a child that keeps its parent": {"A": ("receipt", "A", 1), "B": ("close_wallet", 1)},
    "two looks of one snapshot": {"A": ("look_at_two", "A", 3), "B": ("increment_in_place",)},
    "two looks of two snapshots": {"A": ("look_at_two", "A"), "B": ("increment_in_place",)},
    "a wait that holds up another race": {
        "A": ("touch_and_tell", "A"), "B": ("touch",), "C": ("tell", "C")},
    "a cascade that somebody sees": {
        "A": ("spend", "A", 1), "B": ("close_wallet", 1),
        "C": ("look", "C", "SELECT count(*) FROM spends")},
    "rows that nobody looks at": {letter: ("note", letter) for letter in "ABC"},
    "rows of which somebody sees the first": {
        "A": ("note", "A"), "B": ("note", "B"),
        "C": ("look", "C", "SELECT who FROM log ORDER BY id LIMIT 1")},
    "rows of which somebody sees how many": {
        "A": ("note", "A"), "B": ("claim", "B"),
        "C": ("look", "C", "SELECT count(*) FROM log")},
    "numbers from a sequence": {
        letter: ("look", letter, "SELECT nextval('log_id_seq')") for letter in "AB"},
    "locks of sessions": {letter: ("hold_session_lock", letter, False) for letter in "AB"},
    "locks that nobody releases": {letter: ("hold_session_lock", letter) for letter in "AB"},
    "locks of connections that are closed": {letter: ("own_connection", letter) for letter in "AB"},
}

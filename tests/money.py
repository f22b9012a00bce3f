"""What the tests of money share: the programs of 07 and 08 on one database, and its invariants.

Started as `python -m tests.money SEED OPERATIONS` it is a process that moves money at random, and
that may be killed at any moment.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta

import psycopg

from lab.folders import ROOT
from lab.world.clock import MX

START = datetime(2026, 5, 29, 18, tzinfo=MX)
USERS = range(1, 9)
LATER = "CREATE TABLE processed_event (event_id TEXT PRIMARY KEY);" \
        " ALTER TABLE user_billing ADD plan_cents INT NOT NULL DEFAULT 1499;"
FILL = "INSERT INTO user_billing (user_id, balance_cents) SELECT n, 0 FROM generate_series(3, 8) n"
BROKEN = """
SELECT user_id, balance_cents, held, explained
FROM user_billing
LEFT JOIN (SELECT user_id, sum(cents) AS held FROM hold GROUP BY 1) h USING (user_id)
LEFT JOIN (SELECT user_id, sum(cents) AS explained FROM ledger GROUP BY 1) l USING (user_id)
WHERE balance_cents < 0 OR balance_cents + coalesce(held, 0) <> coalesce(explained, 0)
UNION ALL SELECT user_id, cents, NULL, NULL FROM hold WHERE cents < 0
"""


def programs(name: str):
    """A module of 07 or 08, imported as its own stage would."""
    for folder in ("07-lost-increments", "08-lost-cents"):
        if str(ROOT / folder) not in sys.path:
            sys.path.append(str(ROOT / folder))
    return importlib.import_module(name)


def broken(conn: psycopg.Connection) -> list[tuple]:
    """Users below zero, or whose balance and holds are not what the ledger explains."""
    return conn.execute(BROKEN).fetchall()


def move(rng: random.Random, holds: list[int], now: datetime) -> None:
    """One operation, chosen at random, on a random user; `holds` are those of this process."""
    reservations, user = programs("reservations"), rng.choice(USERS)
    kind = rng.choice(("debit", "reserve", "reserve", "settle", "release", "expire", "renew"))
    if kind == "debit":
        programs("guarded_debit").debit(user, rng.randint(1, 400))
    elif kind == "reserve":
        hold = reservations.reserve(user, rng.randint(1, 400), now)
        holds += [hold] if hold else []
    elif kind == "expire":
        reservations.expire(now)
    elif kind == "renew":  # few ids, so that most deliveries are repetitions
        programs("renew_once").renew(f"evt-{user}-{rng.randint(1, 40)}", user)
    elif holds:
        hold = holds.pop(rng.randrange(len(holds)))
        if kind == "settle":
            reservations.settle(hold, rng.randint(0, 500))
        else:
            reservations.release(hold)


def kept(conn: psycopg.Connection):
    """A `connect` that gives this connection again and again, a transaction each time."""
    @contextmanager
    def connect():
        with conn.transaction():
            yield conn
    return connect


def main(seed: int, operations: int) -> None:
    """Move money, and print the number of operations done after every tenth."""
    rng, holds = random.Random(seed), []
    programs("renew_once").connect = kept(psycopg.connect(os.environ["DATABASE_URL"]))
    for done in range(1, operations + 1):
        move(rng, holds, START + timedelta(minutes=done // 10))
        if done % 10 == 0:
            os.write(1, f"{done}\n".encode())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

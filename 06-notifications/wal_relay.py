"""A relay that reads the purchases themselves, out of Postgres's log; there is no outbox.

**Stops:** phantoms and losses: the log has what was committed, in the order in which it was.
**Lets through:** duplicates, as any relay. One message that cannot be sent stops those behind it,
and the log piles up on the server's disk until it is read.

Needs wal_level = logical. Source: PostgreSQL documentation, "Logical Decoding" and "test_decoding".
"""

import logging
import re
import sys
from datetime import datetime, timedelta

import psycopg

from lab.world import clock

from shop import NotSent, connect, notify

POLL = timedelta(seconds=1)  # how late a push may be: peeking is cheap, but does not wait
SLOT = "SELECT current_database() || '_purchases'"
PURCHASE = re.compile(r"table public\.purchases: INSERT: order_key\[text\]:'((?:[^']|'')*)'")

logger = logging.getLogger("wal_relay")


def prepare() -> str:
    """Make the slot from which on nothing is missed, unless it is there; returns its name."""
    with connect(autocommit=True) as db:
        (slot,) = db.execute(SLOT).fetchone()
        if not db.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s",
                          (slot,)).fetchone():
            db.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (slot,))
    return slot


def run_once(db: psycopg.Connection, slot: str) -> int:
    """Deliver the next transaction of the log; returns how many rows of it were read, 0 at its end.

    Raises NotSent; the log stays where it was, and the transaction will be read again.
    """
    changes = db.execute(  # peek: reading does not move the slot
        "SELECT lsn, data FROM pg_logical_slot_peek_changes(%s, NULL, 1, 'include-xids', '0')",
        (slot,)).fetchall()
    for _, change in changes:
        if bought := PURCHASE.match(change):
            notify(bought[1].replace("''", "'"))
    if changes:
        # Not safe against duplicates: who dies before this line is sent the transaction again.
        db.execute("SELECT pg_replication_slot_advance(%s, %s)", (slot, changes[-1][0]))
    return len(changes)


def drain(now: datetime) -> None:
    """Deliver to the end of the log; raises NotSent."""
    with connect(autocommit=True) as db:
        (slot,) = db.execute(SLOT).fetchone()
        while run_once(db, slot):
            pass


def main() -> None:
    """Deliver for ever."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    prepare()
    logger.info("wal_relay started")
    while True:
        try:
            drain(clock.now())
        except NotSent as error:
            logger.warning("%s", error)
        clock.sleep_until(clock.now() + POLL)


if __name__ == "__main__":
    main()

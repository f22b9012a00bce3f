"""Dead end 2: one leader, elected by a lease in Postgres that it renews with every tick.

**Stops:** ticks of all the others while the leader's lease runs, at the same time or in turn.
**Lets through:** a leader that stood still past its lease and wakes up in the middle of its work;
and a successor within the same slot, which does not know what the leader did.
"""

from datetime import datetime, timedelta
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world import community

from leaderboard import leaderboard_close

HOLDER = uuid4().hex  # this process
LEASE = timedelta(minutes=5)


def lead(db: Session, now: datetime) -> int | None:
    """Take the lease or renew our own; the caller commits.

    Returns the term's number, higher with each new leader; None while another one leads.
    """
    return db.scalar(text("""
        INSERT INTO leases (name, holder, expires_at, term)
        VALUES ('scheduler', :holder, :until, 1)
        ON CONFLICT (name) DO UPDATE
        SET holder = excluded.holder, expires_at = excluded.expires_at,
            term = leases.term + (leases.holder <> excluded.holder)::int
        WHERE leases.holder = excluded.holder OR leases.expires_at <= :now
        RETURNING term
    """), {"holder": HOLDER, "now": now, "until": now + LEASE})


def tick(now: datetime) -> list[str]:
    """One wake-up: the leader does the work; returns what it did, a line an entry."""
    with community.open_session() as db:
        term = lead(db, now)
        db.commit()
        if term is None:
            return []
        # Not safe: "I am the leader" was true at the commit above, and nothing asks again.
        did = leaderboard_close(db, now)
        db.commit()
    return did

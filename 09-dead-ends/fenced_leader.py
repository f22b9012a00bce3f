"""The way out of dead end 2: the leader's term is a fencing token, and the slot is claimed with it.

**Stops:** a second payment for a slot, and a former leader that has not noticed.
**Lets through:** what every claim lets through; the lease now only decides who tries first.
"""

from datetime import datetime
from functools import partial

from leader import lead
from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world import community

from leaderboard import leaderboard_close


def claim_run(db: Session, key: str, term: int) -> bool:
    """Reserve the slot for this term; False if it is taken, or if a later leader was elected."""
    return db.scalar(text("""
        INSERT INTO worker_runs (name, key, term)
        SELECT 'leaderboard_close', :key, term FROM leases WHERE name = 'scheduler' AND term = :term
        ON CONFLICT (name, key) DO NOTHING
        RETURNING true
    """), {"key": key, "term": term}) is not None


def tick(now: datetime) -> list[str]:
    """One wake-up: the leader does the work; returns what it did, a line an entry."""
    with community.open_session() as db:
        term = lead(db, now)
        db.commit()
        if term is None:
            return []
        # Safe: the claim is committed with the coins, and the table lets only one of them in.
        did = leaderboard_close(db, now, partial(claim_run, term=term))
        db.commit()
    return did

"""A mistake to try: the claim is committed at once, "so that the others need not wait for it".

**Stops:** a second payment for a slot.
**Lets through:** a process that dies between the two commits: the slot is used up, nobody is paid.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from jobs import leaderboard_close
from jobs.claims import claim_run
from jobs.entry import run_job


def claim_at_once(db: Session, name: str, key: str) -> bool:
    """Reserve (name, key) as `claim_run` does, in a transaction of its own."""
    claimed = claim_run(db, name, key)
    # Not safe: from here on the slot counts as done, and nothing has been done for it.
    db.commit()
    return claimed


def run(now: datetime) -> list[str]:
    """The job, in two transactions; returns what it did, a line an entry."""
    return run_job(leaderboard_close.run, now, claim=claim_at_once)

"""The worker that lives in every replica: every 15 minutes it runs what has no hour of its own.

**Stops:** ticks that overlap.
**Lets through:** nothing of the weekly jobs: it no longer knows that they exist.
"""

import logging
import sys
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world import clock

from continuous import anniversary, zombie_threads
from jobs.entry import run_job

logger = logging.getLogger("worker")
TICK_LOCK_KEY = 0x4D424F54  # "MBOT": any number that no other program locks in this database
CONTINUOUS = (anniversary, zombie_threads)


def tick(now: datetime) -> list[str]:
    """One wake-up, in one transaction; returns what it did, a line an entry."""
    return run_job(dispatch, now)


def dispatch(db: Session, now: datetime) -> list[str]:
    """Run the continuous jobs, unless another replica is at it; the caller commits."""
    if not db.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": TICK_LOCK_KEY}):
        return []
    return [line for job in CONTINUOUS for line in job(db, now)]


def main() -> None:
    """Wake up every 15 minutes, for ever; a tick that fails is logged and the next one is tried."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    logger.info("worker started, %s", f"{clock.now():%a %H:%M:%S}")
    for now in clock.every(minutes=15):
        try:
            if did := tick(now):
                logger.info("%s %s", f"{now:%a %H:%M:%S}", "; ".join(did))
        except Exception:
            logger.exception("%s tick failed", f"{now:%a %H:%M:%S}")


if __name__ == "__main__":
    main()

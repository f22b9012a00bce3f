"""The worker that lives in every replica: it wakes up every 15 minutes and looks at the wall clock.

**Stops:** ticks that overlap: the second does not get the lock and leaves.
**Lets through:** ticks in turn, and calls that do not ask for the lock. The loser does not come
back when the winner fails.
"""

import logging
import sys
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world import clock, community

import bot_service
from continuous import anniversary
from leaderboard import leaderboard_close

logger = logging.getLogger("worker")
TICK_LOCK_KEY = 0x4D424F54  # "MBOT": any number that no other program locks in this database


def try_tick_lock(db: Session) -> bool:
    """Take the lock of the tick for this transaction; False, at once, if another one has it."""
    return db.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": TICK_LOCK_KEY})


def friday_18_window(now: datetime) -> bool:
    """Whether `now` (Mexico City time) is in the quarter of an hour in which the week is closed."""
    return now.weekday() == 4 and now.hour == 18 and now.minute < 15


def tick(now: datetime, post_thread=bot_service.post_thread) -> list[str]:
    """One wake-up, in one transaction; returns what it did, a line an entry."""
    did = []
    with community.open_session() as db:
        # Not safe by itself: it ends with this transaction, and the next tick gets it as well.
        if not try_tick_lock(db):
            return did
        if friday_18_window(now):
            did += leaderboard_close(db, now, post_thread)
        did += anniversary(db, now)
        db.commit()
    return did


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

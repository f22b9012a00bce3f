"""The relay: sends what the outbox holds, one message at a time; several may run at once.

**Stops:** losses. A message stays pending until its push was answered, whoever dies meanwhile; one
that cannot be sent is set aside after MOST_ATTEMPTS, so that it does not hold up the others.
**Lets through:** duplicates. Who dies between push and mark leaves the message to be sent again.
Who stands still for longer than its claim holds sends what another one has sent meanwhile.
"""

import logging
import sys
from datetime import datetime, timedelta

import psycopg

from lab.world import clock

from shop import NotSent, connect, notify

MOST_ATTEMPTS = 5  # four pauses, of 30 s to 4 min: a receiver's hiccup is over by then
LONGEST_PAUSE = 60.0  # seconds; a server that comes back is noticed within a minute
IDLE = 5.0  # real seconds until it looks by itself: a NOTIFY sent while nobody listened is gone

# The attempt is counted before the push, so that a message whose push kills the relay runs out of
# attempts, too. Until due_at, which a push never takes so long to reach, it is nobody else's.
CLAIM = """
    UPDATE outbox SET attempts = attempts + 1, due_at = %(now)s + interval '30 s' * 2 ^ attempts
    WHERE id = (
        SELECT id FROM outbox AS mine
        WHERE sent_at IS NULL AND set_aside_at IS NULL AND due_at <= %(now)s AND id = (
            SELECT min(id) FROM outbox AS pending  -- a user's messages go out in their order
            WHERE pending.user_id = mine.user_id
              AND pending.sent_at IS NULL AND pending.set_aside_at IS NULL)
        ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, order_key, attempts"""

logger = logging.getLogger("relay")


def run_once(db: psycopg.Connection, now: datetime) -> str:
    """Deliver one message that is due; `db` commits by itself, so nothing is held during the push.

    Returns "sent", "refused" (try again later), "set aside", "trouble" (the server's) or "idle".
    """
    claimed = db.execute(CLAIM, {"now": now}).fetchone()
    if claimed is None:
        return "idle"
    message, order, attempts = claimed
    if attempts > MOST_ATTEMPTS:
        db.execute("UPDATE outbox SET set_aside_at = %s WHERE id = %s", (now, message))
        logger.error("%s set aside after %d attempts", order, MOST_ATTEMPTS)
        return "set aside"
    try:
        notify(order)
    except NotSent as error:
        logger.warning("%s, attempt %d: %s", order, attempts, error)
        if error.refused:
            return "refused"
        # The server's trouble is not the message's fault: it gets its attempt back.
        db.execute("UPDATE outbox SET attempts = attempts - 1, due_at = %s WHERE id = %s",
                   (now, message))
        return "trouble"
    # Not safe against duplicates, and nothing is: between the push and this line one may die.
    db.execute("UPDATE outbox SET sent_at = %s WHERE id = %s", (now, message))
    return "sent"


def drain(now: datetime) -> int:
    """Deliver what is due by `now`, unless the server gets into trouble; returns how many."""
    sent = 0
    with connect(autocommit=True) as db:
        while (did := run_once(db, now)) not in ("idle", "trouble"):
            sent += did == "sent"
    return sent


def main() -> None:
    """Deliver for ever: woken by NOTIFY, and slower and slower while the server is in trouble."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    pause = 0.0
    with connect(autocommit=True) as db:
        db.execute("LISTEN outbox")
        logger.info("relay started")
        while True:
            match run_once(db, clock.now()):
                case "idle":
                    next(db.notifies(timeout=IDLE, stop_after=1), None)
                case "trouble":
                    pause = min(2 * pause or 1.0, LONGEST_PAUSE)
                    logger.warning("next try in %.0f s", pause)
                    clock.sleep_until(clock.now() + timedelta(seconds=pause))
                case _:
                    pause = 0.0


if __name__ == "__main__":
    main()

"""The relay: sends what the outbox holds, one message at a time; several may run at once."""

from datetime import datetime

from shop import connect, notify


def drain(now: datetime) -> int:
    """Deliver what is due by `now`; returns how many."""
    sent = 0
    with connect(autocommit=True) as db:
        while pending := db.execute(
                "SELECT id, order_key FROM outbox WHERE sent_at IS NULL ORDER BY id").fetchone():
            message, order = pending
            notify(order)
            db.execute("UPDATE outbox SET sent_at = %s WHERE id = %s", (now, message))
            sent += 1
    return sent

"""The relay: sends what the outbox holds, one message at a time; several may run at once."""

from datetime import datetime

from shop import connect, notify


def drain(now: datetime) -> int:
    """Deliver what is due by `now`; returns how many."""
    sent = 0
    with connect(autocommit=True) as db:
        last = db.execute("SELECT max(id) FROM outbox WHERE sent_at IS NOT NULL").fetchone()[0] or 0
        found = db.execute("SELECT id, order_key FROM outbox WHERE id > %s ORDER BY id", (last,))
        for message, order in found.fetchall():
            notify(order)
            db.execute("UPDATE outbox SET sent_at = %s WHERE id = %s", (now, message))
            sent += 1
    return sent

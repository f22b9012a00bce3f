"""The relay: sends what the outbox holds, one message at a time; several may run at once."""

from datetime import datetime

from shop import connect, notify


def drain(now: datetime) -> int:
    """Deliver what is due by `now`; returns how many."""
    sent = 0
    with connect() as db:
        (last,) = db.execute("SELECT last_id FROM relay_cursor").fetchone()
        found = db.execute("SELECT id, order_key FROM outbox WHERE id > %s ORDER BY id", (last,))
        for message, order in found.fetchall():
            notify(order)
            db.execute("UPDATE relay_cursor SET last_id = %s", (message,))
            db.commit()
            sent += 1
    return sent

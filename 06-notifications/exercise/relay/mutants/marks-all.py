"""The relay: sends what the outbox holds, one message at a time; several may run at once."""

from datetime import datetime

from shop import connect, notify


def drain(now: datetime) -> int:
    """Deliver what is due by `now`; returns how many."""
    with connect(autocommit=True) as db:
        orders = db.execute(
            "SELECT order_key FROM outbox WHERE sent_at IS NULL ORDER BY id").fetchall()
        for (order,) in orders:
            notify(order)
        db.execute("UPDATE outbox SET sent_at = %s WHERE sent_at IS NULL", (now,))
    return len(orders)

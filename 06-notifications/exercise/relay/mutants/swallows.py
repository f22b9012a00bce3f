"""The relay: sends what the outbox holds, one message at a time; several may run at once."""

from datetime import datetime

from shop import connect, notify

# Until due_at a message is the one's who claimed it; a push never takes half a minute.
CLAIM = """
    UPDATE outbox SET due_at = %(now)s + interval '30 s'
    WHERE id = (
        SELECT id FROM outbox WHERE sent_at IS NULL AND due_at <= %(now)s
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, order_key"""


def drain(now: datetime) -> int:
    """Deliver what is due by `now`; returns how many."""
    sent = 0
    with connect(autocommit=True) as db:
        while claimed := db.execute(CLAIM, {"now": now}).fetchone():
            message, order = claimed
            try:
                notify(order)
            except Exception as error:
                print(order, error)
            db.execute("UPDATE outbox SET sent_at = %s WHERE id = %s", (now, message))
            sent += 1
    return sent

"""invoice.paid: the event's id in the transaction of the money, and a cap that takes nothing away.

**Stops:** an event that is delivered twice, the race with a purchase, the cut after a downgrade,
and a crash at any point: the id and the money are committed together or not at all.
**Lets through:** an event that is never delivered. For that there is reconciliation.
"""

import psycopg

from database import connect

MONTHS = 3  # without a cap a sporadic user saves up a year and burns it in a day


def record(db: psycopg.Connection, event: str) -> bool:
    """Note that the event is applied; False if it was before. The caller commits."""
    return db.execute("INSERT INTO processed_event (event_id) VALUES (%s) ON CONFLICT DO NOTHING",
                      (event,)).rowcount == 1


def add(db: psycopg.Connection, user: int) -> int:
    """Add a month of the user's plan; returns the new balance in cents. The caller commits."""
    # Safe: the row is locked first, and what is over the cap already stays as it is.
    return db.execute("""
        WITH old AS (SELECT user_id, balance_cents FROM user_billing
                     WHERE user_id = %(user)s FOR UPDATE),
        new AS (
            UPDATE user_billing b
            SET balance_cents = greatest(b.balance_cents, least(b.balance_cents + plan_cents,
                                                                plan_cents * %(months)s))
            FROM old WHERE b.user_id = old.user_id
            RETURNING b.user_id, b.balance_cents, b.balance_cents - old.balance_cents AS added),
        noted AS (
            INSERT INTO ledger (user_id, cents, reason) SELECT user_id, added, 'renewal' FROM new)
        SELECT balance_cents FROM new
    """, {"user": user, "months": MONTHS}).fetchone()[0]


def renew(event: str, user: int) -> int | None:
    """Apply a paid invoice once; returns the new balance in cents, None if it was before."""
    with connect() as db:
        return add(db, user) if record(db, event) else None

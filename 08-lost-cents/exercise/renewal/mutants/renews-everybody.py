"""invoice.paid: a month of the plan is added to the balance, up to three months, once an event."""

from database import connect

MONTHS = 3  # without a cap a sporadic user saves up a year and burns it in a day


def renew(event: str, user: int) -> int | None:
    """Apply a paid invoice; returns the new balance in cents, None if the event was before."""
    with connect() as db:
        new = db.execute("INSERT INTO processed_event (event_id) VALUES (%s)"
                         " ON CONFLICT DO NOTHING", (event,)).rowcount
        if not new:
            return None
        balance, plan = db.execute(
            "SELECT balance_cents, plan_cents FROM user_billing WHERE user_id = %s FOR UPDATE",
            (user,)).fetchone()
        added = max(0, min(plan, plan * MONTHS - balance))
        db.execute("UPDATE user_billing SET balance_cents = balance_cents + %s",
                   (added,))
        db.execute("INSERT INTO ledger (user_id, cents, reason) VALUES (%s, %s, 'renewal')",
                   (user, added))
    return balance + added

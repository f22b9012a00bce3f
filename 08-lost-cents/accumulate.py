"""invoice.paid: the plan's cents are added, up to three months of them. Read, then written.

**Stops:** the loss of what was left.
**Lets through:** a purchase between reading and writing, whose cost comes back; an event that is
delivered twice; and a balance above the cap, which is cut.
"""

from database import connect

MONTHS = 3  # without a cap a sporadic user saves up a year and burns it in a day


def renew(event: str, user: int) -> int:
    """Apply a paid invoice to the user's balance; returns the new balance in cents."""
    with connect() as db:
        balance, plan = db.execute(
            "SELECT balance_cents, plan_cents FROM user_billing WHERE user_id = %s",
            (user,)).fetchone()
        new = min(balance + plan, plan * MONTHS)
        # Not safe: it writes what follows from a balance that may have changed since.
        db.execute("UPDATE user_billing SET balance_cents = %s WHERE user_id = %s", (new, user))
    return new

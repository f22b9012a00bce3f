"""invoice.paid in one statement, as the post would have it: LEAST of the sum and the cap.

**Stops:** the race with a purchase.
**Lets through:** an event that is delivered twice, and the money of whoever is above the cap: after
a downgrade the new plan's cap is lower than the balance, and LEAST takes the difference away.
"""

from database import connect

MONTHS = 3  # without a cap a sporadic user saves up a year and burns it in a day


def renew(event: str, user: int) -> int:
    """Apply a paid invoice to the user's balance; returns the new balance in cents."""
    with connect() as db:
        return db.execute("""
            UPDATE user_billing
            SET balance_cents = least(balance_cents + plan_cents, plan_cents * %s)
            WHERE user_id = %s RETURNING balance_cents
        """, (MONTHS, user)).fetchone()[0]

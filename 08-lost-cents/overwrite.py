"""invoice.paid: the balance becomes the plan's cents. Nobody decided that; it is a = for a +.

**Stops:** a balance that grows for ever.
**Lets through:** the loss of whatever was left.
"""

from database import connect


def renew(event: str, user: int) -> int:
    """Apply a paid invoice to the user's balance; returns the new balance in cents."""
    with connect() as db:
        return db.execute("""
            UPDATE user_billing SET balance_cents = plan_cents
            WHERE user_id = %s RETURNING balance_cents
        """, (user,)).fetchone()[0]

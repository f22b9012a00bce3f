"""Generate an image: the check that looks into one pocket only.

**Stops:** a generation that the subscription does not cover.
**Lets through:** a 402 for a user whose daily credits would do.
"""

from database import connect


def generate(user: int, cost: int) -> int | None:
    """Take the cost from the user's credits; returns what is left, or None (402)."""
    with connect() as db:
        # Not wrong for one pocket. When the second came, nobody told this line.
        row = db.execute("""
            UPDATE profile SET sub_credits = sub_credits - %(cost)s
            WHERE user_id = %(user)s AND sub_credits >= %(cost)s
            RETURNING daily_credits + sub_credits
        """, {"user": user, "cost": cost}).fetchone()
    return row and row[0]

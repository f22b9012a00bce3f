"""Generate an image: one definition of the total, and one statement for both pockets.

Order of spending: the daily credits first, which are gone at midnight; then the subscription's.

**Stops:** the 402 that should not be, and a pocket below zero.
**Lets through:** nothing. A third pocket changes the column's definition and this statement.
"""

from database import connect


def generate(user: int, cost: int) -> int | None:
    """Take the cost from the user's credits; returns what is left, or None (402)."""
    with connect() as db:
        # Safe: on the right of = stand the values before the UPDATE, of one and the same row.
        row = db.execute("""
            UPDATE profile SET daily_credits = daily_credits - least(daily_credits, %(cost)s),
                               sub_credits = sub_credits - greatest(%(cost)s - daily_credits, 0)
            WHERE user_id = %(user)s AND total_credits >= %(cost)s
            RETURNING total_credits
        """, {"user": user, "cost": cost}).fetchone()
    return row and row[0]

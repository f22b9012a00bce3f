"""A purchase: the guarded debit of 07, which a renewal may come across.

**Stops:** a balance below zero.
**Lets through:** nothing; what a renewal does to it is the renewal's affair.
"""

from database import connect


def debit(user: int, cents: int) -> int | None:
    """Take the cents from the user's balance; returns what is left, or None (402)."""
    with connect() as db:
        row = db.execute("""
            WITH paid AS (
                UPDATE user_billing SET balance_cents = balance_cents - %(cents)s
                WHERE user_id = %(user)s AND balance_cents >= %(cents)s
                RETURNING user_id, balance_cents),
            noted AS (
                INSERT INTO ledger (user_id, cents, reason)
                SELECT user_id, -%(cents)s, 'debit' FROM paid)
            SELECT balance_cents FROM paid
        """, {"user": user, "cents": cents}).fetchone()
    return row and row[0]

"""Charge a user for something in one statement: the question is the WHERE of the UPDATE.

**Stops:** a charge that the balance does not cover, whoever else is charging.
**Lets through:** nothing, as long as the price is known beforehand; see `reservations.py`.
"""

from models import one_statement


def debit(user: int, cents: int) -> int | None:
    """Take the cents from the user's balance; returns what is left, or None (402)."""
    # Safe: whoever waited for the row asks its question again, of the row as it is now.
    return one_statement("""
        WITH paid AS (
            UPDATE user_billing SET balance_cents = balance_cents - :cents
            WHERE user_id = :user AND balance_cents >= :cents
            RETURNING user_id, balance_cents),
        noted AS (
            INSERT INTO ledger (user_id, cents, reason) SELECT user_id, -:cents, 'debit' FROM paid)
        SELECT balance_cents FROM paid
    """, user=user, cents=cents)

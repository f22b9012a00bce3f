"""Charge a user for something: the balance and the ledger, together, and never below zero."""

from sqlalchemy import text

from models import open_session


def debit(user: int, cents: int) -> int | None:
    """Take the cents from the user's balance; returns what is left, or None (402)."""
    with open_session() as db:
        left = db.scalar(text("""
            UPDATE user_billing SET balance_cents = balance_cents - :cents
            WHERE user_id = :user AND balance_cents > :cents RETURNING balance_cents
        """), {"user": user, "cents": cents})
        if left is None:
            return None
        db.execute(text("""
            INSERT INTO ledger (user_id, cents, reason) VALUES (:user, -:cents, 'debit')
        """), {"user": user, "cents": cents})
        db.commit()
    return left

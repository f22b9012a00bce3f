"""Charge for a call whose price is known when it ends: reserve an estimate, then settle."""

from datetime import datetime, timedelta

from sqlalchemy import text

from models import open_session

HOLD_FOR = timedelta(minutes=10)  # longer than any call that the provider answers at all


def reserve(user: int, cents: int, now: datetime) -> int | None:
    """Set the cents aside; returns the hold's id, or None when the balance is short (402)."""
    with open_session() as db:
        taken = db.execute(text("""
            UPDATE user_billing SET balance_cents = balance_cents - :cents
            WHERE user_id = :user AND balance_cents >= :cents
        """), {"user": user, "cents": cents})
        if not taken.rowcount:
            return None
        hold = db.scalar(text("""
            INSERT INTO hold (user_id, cents, expires_at) VALUES (:user, :cents, :until)
            RETURNING id
        """), {"user": user, "cents": cents, "until": now + HOLD_FOR})
        db.commit()
    return hold


def settle(hold: int, cost: int) -> int | None:
    """Charge the cost, at most what is held, and give back the rest; returns the cents charged.

    None: the hold is settled or expired already, and nothing was charged.
    """
    with open_session() as db:
        found = db.execute(text("DELETE FROM hold WHERE id = :hold RETURNING user_id, cents"),
                           {"hold": hold}).first()
        if found is None:
            return None
        user, held = found
        due = min(cost, held)
        db.execute(text("""
            UPDATE user_billing SET balance_cents = balance_cents + :back WHERE user_id = :user
        """), {"back": held - due, "user": user})
        db.execute(text("""
            INSERT INTO ledger (user_id, cents, reason) VALUES (:user, -:due, 'call')
        """), {"user": user, "due": due})
        db.commit()
    return due


def expire(now: datetime) -> int:
    """Give back every hold that is over by `now`; returns how many."""
    with open_session() as db:
        gone = db.execute(text("""
            SELECT user_id, cents FROM hold WHERE expires_at <= :now
        """), {"now": now}).all()
        db.execute(text("DELETE FROM hold WHERE expires_at <= :now"), {"now": now})
        for user, cents in gone:
            db.execute(text("""
                UPDATE user_billing SET balance_cents = balance_cents + :cents
                WHERE user_id = :user
            """), {"cents": cents, "user": user})
        db.commit()
    return len(gone)


def call(user: int, estimate: int, cost: int, now: datetime) -> int | None:
    """A whole call to a provider that takes `cost` cents; returns the charge, None for 402."""
    hold = reserve(user, estimate, now)
    return None if hold is None else settle(hold, cost)

"""Charge for a call whose price is known when it ends: reserve an estimate, then settle.

The estimate is a ceiling: what a call costs beyond it is the house's (`absorbed` in the ledger's
reason), so ask the provider for no more tokens than it pays for.

**Stops:** a balance below zero, and money that stays held when a process dies: the hold expires.
**Lets through:** a call that takes longer than its hold. It settles nothing: the money is back.
"""

from datetime import datetime, timedelta

from models import one_statement

HOLD_FOR = timedelta(minutes=10)  # longer than any call that the provider answers at all


def reserve(user: int, cents: int, now: datetime) -> int | None:
    """Set the cents aside; returns the hold's id, or None when the balance is short (402)."""
    return one_statement("""
        WITH taken AS (
            UPDATE user_billing SET balance_cents = balance_cents - :cents
            WHERE user_id = :user AND balance_cents >= :cents RETURNING user_id)
        INSERT INTO hold (user_id, cents, expires_at)
        SELECT user_id, :cents, :expires_at FROM taken RETURNING id
    """, user=user, cents=cents, expires_at=now + HOLD_FOR)


def settle(hold: int, cost: int) -> int | None:
    """Charge the cost, at most what is held, and give back the rest; returns the cents charged.

    None: the hold is settled, released or expired already, and nothing was charged.
    """
    # Safe: only one transaction can delete the hold, and who deletes it moves the money.
    return one_statement("""
        WITH closed AS (
            DELETE FROM hold WHERE id = :hold RETURNING user_id, cents, least(cents, :cost) AS due),
        returned AS (
            UPDATE user_billing b SET balance_cents = balance_cents + cents - due
            FROM closed WHERE b.user_id = closed.user_id),
        noted AS (
            INSERT INTO ledger (user_id, cents, reason)
            SELECT user_id, -due, 'call' || CASE WHEN :cost > due
                                            THEN ', absorbed ' || :cost - due ELSE '' END
            FROM closed)
        SELECT due FROM closed
    """, hold=hold, cost=cost)


def release(hold: int) -> int | None:
    """The call was not made: give everything back; returns 0, or None if the hold is gone."""
    return settle(hold, 0)


def expire(now: datetime) -> int:
    """Give back every hold that is over by `now`; returns how many. Any number may run at once."""
    expired = 0
    # One hold a transaction: whoever locks several users' rows may deadlock with another.
    while one_statement("""
        WITH gone AS (
            DELETE FROM hold WHERE id = (
                SELECT id FROM hold WHERE expires_at <= :now
                ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING user_id, cents)
        UPDATE user_billing b SET balance_cents = balance_cents + cents
        FROM gone WHERE b.user_id = gone.user_id RETURNING 1
    """, now=now):
        expired += 1
    return expired


def call(user: int, estimate: int, cost: int, now: datetime) -> int | None:
    """A whole call that costs `cost` cents; returns what was charged, or None (402).

    0: the call took longer than its hold, so the provider is paid and the user is not charged.
    """
    hold = reserve(user, estimate, now)
    return None if hold is None else settle(hold, cost) or 0

"""read_modify_write.py under a stricter isolation level: an error instead of a loss, and a retry.

**Stops:** lost increments and the revocation in the gap: the second writer gets 40001, not a loss.
**Lets through:** nothing wrong, as long as the whole transaction is retried, the reading included.
It costs a second attempt for each collision.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from models import ApiKey, open_session

ATTEMPTS = 100  # some attempt always wins; with 100 users at once the unluckiest loses dozens
SERIALIZATION_FAILURE = "40001"


class TooBusy(Exception):
    """Every attempt collided with somebody (503)."""


def authenticate(secret: str, now: datetime, isolation: str = "REPEATABLE READ") -> int | None:
    """Count a use of the key; returns its new count, or None when it may not be used (401)."""
    for _ in range(ATTEMPTS):
        try:
            return _attempt(secret, now, isolation)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != SERIALIZATION_FAILURE:
                raise
    raise TooBusy(secret)


def _attempt(secret: str, now: datetime, isolation: str) -> int | None:
    with open_session(isolation) as db:
        key = db.scalar(select(ApiKey).where(ApiKey.secret == secret))
        if key is None or key.revoked_at:
            return None
        key.use_count += 1  # safe: if the row has changed since our snapshot, this is an error
        key.last_used_at = now
        db.commit()
    return key.use_count

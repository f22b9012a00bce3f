"""Authenticate a key and count its use with the ORM, on a row that is locked as it is read.

**Stops:** lost increments and the revocation in the gap: nobody writes the row while we hold it.
**Lets through:** nothing wrong. It costs a round trip more, and holds the row during all of them.
"""

from datetime import datetime

from sqlalchemy import select

from models import ApiKey, open_session


def authenticate(secret: str, now: datetime) -> int | None:
    """Count a use of the key; returns its new count, or None when it may not be used (401)."""
    with open_session() as db:
        # Safe: whoever else wants the row waits here, and reads it after our commit.
        key = db.scalar(select(ApiKey).where(ApiKey.secret == secret).with_for_update())
        if key is None or key.revoked_at:
            return None
        key.use_count += 1
        key.last_used_at = now
        db.commit()
    return key.use_count

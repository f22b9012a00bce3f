"""Authenticate a key and count its use, as one writes it with an ORM.

**Stops:** a revoked key, if it was revoked before we read it.
**Lets through:** an increment that is written over by another one, and a key that is revoked
between our reading and our writing.
"""

from datetime import datetime

from sqlalchemy import select

from models import ApiKey, open_session


def authenticate(secret: str, now: datetime) -> int | None:
    """Count a use of the key; returns its new count, or None when it may not be used (401)."""
    with open_session() as db:
        key = db.scalar(select(ApiKey).where(ApiKey.secret == secret))
        if key is None or key.revoked_at:
            return None
        key.use_count += 1  # not safe: what we add to may not be what we write over
        key.last_used_at = now
        db.commit()
    return key.use_count

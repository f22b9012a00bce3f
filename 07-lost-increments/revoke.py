"""Revoke a key, and keep the count at which it ended: what the customer is billed for.

**Stops:** nothing.
**Lets through:** uses by whoever read the key before this was committed.
"""

from datetime import datetime

from models import one_statement


def revoke(secret: str, now: datetime) -> int | None:
    """Revoke the key from `now` on; returns its last count, None if it was revoked before."""
    return one_statement("""
        UPDATE api_key SET revoked_at = :now, count_when_revoked = use_count
        WHERE secret = :secret AND revoked_at IS NULL
        RETURNING count_when_revoked
    """, secret=secret, now=now)

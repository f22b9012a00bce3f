"""Authenticate a key and count its use in one statement, with the condition in its WHERE.

**Stops:** lost increments, and a revocation in the gap: there is no gap.
**Lets through:** a use whose caller never hears of it: the process dies after the commit.
"""

from datetime import datetime

from models import one_statement


def authenticate(secret: str, now: datetime) -> int | None:
    """Count a use of the key; returns its new count, or None when it may not be used (401)."""
    # Safe: Postgres locks the row, reads it as it is then, checks it, and adds to that.
    return one_statement("""
        UPDATE api_key
        SET use_count = use_count + 1, last_used_at = :now
        WHERE secret = :secret AND revoked_at IS NULL
        RETURNING use_count
    """, secret=secret, now=now)

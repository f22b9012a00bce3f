"""invoice.paid: the event's id is committed at once, "so that nobody else takes it".

**Stops:** an event that is delivered twice.
**Lets through:** a process that dies between the two commits: the event counts as applied, and the
customer has paid for nothing.
"""

import renew_once
from database import connect


def renew(event: str, user: int) -> int | None:
    """Apply a paid invoice once; returns the new balance in cents, None if it was before."""
    with connect() as db:
        new = renew_once.record(db, event)
    # Not safe: the id is there from here on, and the money is not.
    if not new:
        return None
    with connect() as db:
        return renew_once.add(db, user)

"""A repeated search as one more row of the same table, with another status.

**Stops:** a report that says less than the invoice.
**Lets through:** a unit of quota that nobody used, and a row that the next repetition refers to:
the readers in `readers.py` do not ask for the status, and nobody tells them to.
"""

from datetime import datetime

from database import connect
from readers import ask_provider, original


def search(user: int, query: str, cents: int, now: datetime) -> str:
    """Search for the user, which costs us `cents`; returns "charged" or "duplicate"."""
    with connect() as db:
        first = original(db, user, query)
        cost = ask_provider(db, cents)
        # Not safe: every row of this table is a unit of quota, for whoever counts them.
        db.execute("INSERT INTO search (user_id, query, cost_cents, at, status, duplicate_of)"
                   " VALUES (%s, %s, %s, %s, %s, %s)",
                   (user, query, cost, now, "duplicate" if first else "charged", first))
    return "charged" if first is None else "duplicate"

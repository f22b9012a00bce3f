"""A repeated search: no quota for it, and nobody writes down what it cost.

**Stops:** a second unit of quota for the same search.
**Lets through:** the cost of the repetition. The report says less than the invoice.
"""

from datetime import datetime

from database import connect
from readers import ask_provider, original


def search(user: int, query: str, cents: int, now: datetime) -> str:
    """Search for the user, which costs us `cents`; returns "charged" or "duplicate"."""
    with connect() as db:
        first = original(db, user, query)
        cost = ask_provider(db, cents)
        if first is None:
            db.execute("INSERT INTO search (user_id, query, cost_cents, at)"
                       " VALUES (%s, %s, %s, %s)", (user, query, cost, now))
        # Not safe: when it is a repetition, nobody writes the cost down.
    return "charged" if first is None else "duplicate"

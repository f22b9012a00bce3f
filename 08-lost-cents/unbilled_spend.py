"""A repeated search: what it cost goes to a table of its own, which charges nobody.

**Stops:** a report that says less than the invoice; quota and price per charged search stay.
**Lets through:** the repetition itself: it still costs money; a cache would stop that. And two of
the same search at once, which do not see each other: both are charged.
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
        else:  # safe: who counts searches does not see it, and the report adds it up
            db.execute("INSERT INTO unbilled_search_spend (search_id, cost_cents, at)"
                       " VALUES (%s, %s, %s)", (first, cost, now))
    return "charged" if first is None else "duplicate"

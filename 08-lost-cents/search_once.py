"""A repeated search that finds the one it repeats, however close behind it comes.

**Stops:** two searches at once that do not see each other and are charged twice.
**Lets through:** the repetition itself: it still costs money. And the searches of one user wait for
each other, for as long as the provider takes.
"""

from datetime import datetime

from database import connect
from readers import ask_provider, original


def search(user: int, query: str, cents: int, now: datetime) -> str:
    """Search for the user, which costs us `cents`; returns "charged" or "duplicate"."""
    with connect() as db:
        # Safe: who comes second waits here, and looks when the first has committed.
        db.execute("SELECT FROM profile WHERE user_id = %s FOR UPDATE", (user,))
        first = original(db, user, query)
        cost = ask_provider(db, cents)
        if first is None:
            db.execute("INSERT INTO search (user_id, query, cost_cents, at)"
                       " VALUES (%s, %s, %s, %s)", (user, query, cost, now))
        else:
            db.execute("INSERT INTO unbilled_search_spend (search_id, cost_cents, at)"
                       " VALUES (%s, %s, %s)", (first, cost, now))
    return "charged" if first is None else "duplicate"

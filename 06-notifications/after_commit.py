"""The push after the commit: at most once.

**Stops:** a push about a purchase that does not exist.
**Lets through:** a purchase that nobody is told of (lost): who dies between the two does not send.
"""

from datetime import datetime

from shop import connect, notify, sell


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase, and the push about it."""
    with connect() as db:
        sell(db, order, user, product, now)
        db.commit()
    notify(order)  # not safe: the process may never come to this line

"""The push before the transaction.

**Stops:** nothing.
**Lets through:** a push about a purchase that never comes to be (phantom), or not yet (early).
"""

from datetime import datetime

from shop import connect, notify, sell


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase, and the push about it."""
    notify(order)  # not safe: nothing is bought yet
    with connect() as db:
        sell(db, order, user, product, now)
        db.commit()

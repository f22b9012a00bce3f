"""The push inside the transaction, just before its commit: "it cannot go wrong there".

**Stops:** a push about a product that is sold out.
**Lets through:** a push about a purchase whose commit fails (phantom), or has not ended (early).
And while the push takes its time, the connection and the product's row are held.
"""

from datetime import datetime

from shop import connect, notify, sell


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase, and the push about it."""
    with connect() as db:
        sell(db, order, user, product, now)
        notify(order)  # not safe: a rollback takes back the rows, and cannot take back a push
        db.commit()

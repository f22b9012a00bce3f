"""The purchase and nothing else: no push, no outbox. `wal_relay.py` finds it in Postgres's log.

**Stops:** phantoms and losses, together with a reader of the log: what is committed is in it.
**Lets through:** what `wal_relay.py` lets through.
"""

from datetime import datetime

from shop import connect, sell


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase; whoever reads the log tells of it."""
    with connect() as db:
        sell(db, order, user, product, now)
        db.commit()

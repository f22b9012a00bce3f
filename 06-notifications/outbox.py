"""A row in the same transaction instead of the push; `relay.py` reads the rows and sends.

**Stops:** phantoms and losses: the purchase and the duty to tell are committed together, or not.
**Lets through:** duplicates, from a relay that dies after it has sent and before it has said so.
"""

from datetime import datetime

import psycopg

from shop import connect, sell, text


def tell(db: psycopg.Connection, order: str, user: int, now: datetime) -> None:
    """Write down what has to be sent, and wake the relays when this is committed."""
    db.execute(
        "INSERT INTO outbox (order_key, user_id, body, due_at) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (order_key) DO NOTHING", (order, user, text(order), now))
    db.execute("SELECT pg_notify('outbox', '')")


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase, and the duty to tell of it."""
    with connect() as db:
        sell(db, order, user, product, now)
        tell(db, order, user, now)  # safe: it is the same transaction, really
        db.commit()

"""What every placement shares: a purchase in the database, and the push about it.

**Stops:** a second purchase for an order that the front end sends twice.
**Lets through:** nothing about the push: where `notify` is called decides that.
"""

import json
import os
import urllib.error
import urllib.request
from datetime import datetime
from http.client import HTTPException

import psycopg

TOPIC = "ta050"
PATIENCE = 10.0  # seconds for an answer of the push server; without a limit it may hold us for ever


class NotSent(Exception):
    """The push server did not say yes. Unless it `refused`, it may have sent all the same."""

    def __init__(self, why: object, refused: bool = False) -> None:
        super().__init__(str(why))
        self.refused = refused


def connect(autocommit: bool = False) -> psycopg.Connection:
    """A new connection to DATABASE_URL; in a transaction from its first statement on by default."""
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=autocommit)


def sell(db: psycopg.Connection, order: str, user: int, product: int, now: datetime) -> None:
    """Record the purchase and take one from the stock; an order that is there stays as it is.

    Raises psycopg.errors.CheckViolation when the product is sold out. The caller commits.
    """
    sold = db.execute(
        "INSERT INTO purchases (order_key, user_id, product_id, bought_at)"
        " VALUES (%s, %s, %s, %s) ON CONFLICT (order_key) DO NOTHING", (order, user, product, now))
    if sold.rowcount:
        # From here until COMMIT every other buyer of this product waits.
        db.execute("UPDATE products SET stock = stock - 1 WHERE id = %s", (product,))


def text(order: str) -> str:
    """What the user reads on the phone."""
    return f"🛒 Tu compra {order} está confirmada."


def notify(order: str, topic: str = TOPIC) -> None:
    """Send the push about an order: one POST, in ntfy's manner. Raises NotSent.

    X-Sequence-ID is the idempotency key: the same order's push carries the same one each time.
    """
    request = urllib.request.Request(
        f"{os.environ['NTFY_URL']}/{topic}", text(order).encode(),
        {"Title": "Tienda", "Tags": "shopping_cart", "X-Sequence-ID": order})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            json.loads(answer.read())["id"]
    except urllib.error.HTTPError as error:
        raise NotSent(f"{error.code} {error.reason}", refused=error.code < 500) from error
    except (OSError, HTTPException) as error:
        raise NotSent(getattr(error, "reason", error)) from error
    except (ValueError, LookupError, TypeError) as error:
        raise NotSent("an answer that is none of ntfy's") from error


def look_up(order: str) -> bool:
    """Whether the purchase is there: what the user sees who opens the push."""
    with connect() as db:
        found = db.execute("SELECT 1 FROM purchases WHERE order_key = %s", (order,)).fetchone()
    return found is not None

"""The receiver: shows each push to the user once, whoever sent it twice.

**Stops:** the second effect of a push that arrives twice: the key is kept in the transaction of the
effect, so both are there or neither.
**Lets through:** the push itself: it arrived twice, and whatever it did on its way happened twice.
"""

import json
import os
import urllib.request
from datetime import datetime

from shop import PATIENCE, TOPIC, connect


def receive(now: datetime) -> int:
    """Take in all that the push server has; returns how many pushes were new."""
    with urllib.request.urlopen(f"{os.environ['NTFY_URL']}/{TOPIC}/json?poll=1",
                                timeout=PATIENCE) as answer:
        pushes = [json.loads(line) for line in answer]
    new = 0
    with connect() as db:
        for push in pushes:
            key = push.get("sequence_id", push["id"])
            shown = db.execute(
                "INSERT INTO shown (order_key, body) VALUES (%s, %s)"
                " ON CONFLICT (order_key) DO NOTHING", (key, push["message"]))
            new += shown.rowcount
        db.commit()
    return new

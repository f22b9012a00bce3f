"""The push after the commit, again and again until it works.

**Stops:** the loss of a push to a server that is away for a while.
**Lets through:** the loss of it to a process that dies, even before the first try; and duplicates,
when only the answer was lost.
"""

from datetime import datetime, timedelta

from lab.world import clock

from shop import NotSent, connect, notify, sell

PAUSE = timedelta(seconds=5)  # long enough not to hammer a server that has just come back


def buy(order: str, user: int, product: int, now: datetime) -> None:
    """One purchase, and the push about it."""
    with connect() as db:
        sell(db, order, user, product, now)
        db.commit()
    while True:  # not safe: a loop promises nothing about the process it runs in
        try:
            return notify(order)
        except NotSent:
            clock.sleep_until(clock.now() + PAUSE)

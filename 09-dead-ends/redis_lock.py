"""Dead end 1: a lock in Redis, done as its manual says: SET NX PX, a token, a safe release.

**Stops:** ticks that overlap, while Redis keeps the key; with a key per slot also ticks in turn.
**Lets through:** a failover to a replica that has not received the key, and an owner that stands
still for longer than its lock holds. A key per slot adds a miss: it stays when the work is undone.
"""

import os
from datetime import datetime, timedelta
from uuid import uuid4

import redis

from lab.world import community
from lab.world.community import week_key

from leaderboard import leaderboard_close

KEY = "leaderboard"
HOLD = timedelta(minutes=5)  # the job takes a second; a crashed owner blocks the others no longer
A_WEEK = timedelta(days=7)  # a slot's key outlives its slot
# Only the owner deletes: a GET and a DEL would leave a gap between them, a script has none.
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def tick(now: datetime) -> list[str]:
    """One wake-up under the lock `KEY`; returns what it did, a line an entry."""
    owner = uuid4().hex
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as store:
        if not store.set(KEY, owner, nx=True, px=HOLD):
            return []
        try:
            # Not safe: Postgres does not know the lock; it commits for whoever believes to hold it.
            return _close(now)
        finally:
            store.eval(RELEASE, 1, KEY, owner)


def tick_per_slot(now: datetime) -> list[str]:
    """One wake-up; the key names the slot and is not released, as a claim would be."""
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as store:
        # Not safe: the key is there from now on, whether the work is committed or not.
        if not store.set(f"{KEY}:{week_key(now)}", uuid4().hex, nx=True, px=A_WEEK):
            return []
    return _close(now)


def _close(now: datetime) -> list[str]:
    with community.open_session() as db:
        did = leaderboard_close(db, now)
        db.commit()
    return did

"""The same job with the claim of stage 03: whoever calls it, a week is closed once.

**Stops:** a second run of a slot, by any process and any library.
**Lets through:** a slot that nobody starts, and a thread that was not written.
"""

from close import pay

from lab.world import clock, community
from lab.world.community import week_key

import claims


def close_week() -> None:
    """Close the week that the community's clock is in, unless that was done."""
    now = clock.now()
    with community.open_session() as db:
        if claims.claim_run(db, "leaderboard_close", week_key(now)):
            pay(db, now)
        db.commit()

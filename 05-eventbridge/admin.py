"""The button "close the leaderboard now" of the admin page: a second way to the same job.

**Stops:** nothing by itself. The job's own claim stops a second payment, whoever calls it.
**Lets through:** whatever the job lets through.
"""

from datetime import datetime

from lab.world import clock

from jobs import leaderboard_close
from jobs.entry import run_job


def close_now(now: datetime) -> list[str]:
    """Close the week that `now` (Mexico City time) is in, at any hour; returns what it did."""
    return run_job(leaderboard_close.run, now)


if __name__ == "__main__":
    print("\n".join(close_now(clock.now())), flush=True)

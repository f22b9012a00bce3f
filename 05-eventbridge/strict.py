"""The command with the cure of 03: a thread that is not posted is an error, and all is undone.

**Stops:** a slot that is used up although its thread is missing.
**Lets through:** a job that fails for good until somebody puts the section back and runs it again.
"""

from datetime import datetime

import bot_service
from jobs import leaderboard_close
from jobs.entry import run_job


def close(now: datetime) -> list[str]:
    """Close the week that `now` (Mexico City time) is in, thread and all, or not at all."""
    return run_job(leaderboard_close.run, now, post_thread=bot_service.require_thread)

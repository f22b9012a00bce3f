"""A replica that was not redeployed: it still looks at the wall clock, while a scheduler fires too.

**Stops:** nothing new. It claims the same name and key as the command, and that is what saves it.
**Lets through:** a second payment as soon as its name or key differs from the command's.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from jobs import leaderboard_close
from jobs.claims import claim_run
from jobs.entry import run_job


def friday_18_window(now: datetime) -> bool:
    """Whether `now` (Mexico City time) is in the quarter of an hour in which the week is closed."""
    return now.weekday() == 4 and now.hour == 18 and now.minute < 15


def tick(now: datetime) -> list[str]:
    """One wake-up of the old worker; returns what it did, a line an entry."""
    return run_job(leaderboard_close.run, now) if friday_18_window(now) else []


def claim_by_its_day(db: Session, name: str, key: str) -> bool:
    """Reserve the slot under another key: the day, as somebody once thought would do."""
    return claim_run(db, name, f"{key}-friday")


def renamed_tick(now: datetime) -> list[str]:
    """The same wake-up, with a key of its own. Not safe: two keys are two slots."""
    if not friday_18_window(now):
        return []
    return run_job(leaderboard_close.run, now, claim=claim_by_its_day)

"""The one way to run a job: open a session, run it, commit; roll back if it raises.

**Stops:** a job that commits half of its work, and one job's error from taking another one down.
**Lets through:** two at once. Each job is its own guard.
"""

from collections.abc import Callable
from datetime import datetime

from lab.world import community


def run_job(job: Callable, now: datetime, **options) -> list[str]:
    """Run one job in one transaction, for the slot that `now` (Mexico City time) falls into.

    Returns what it did, a line an entry. What the job raises is raised again once all is undone.
    """
    with community.open_session() as db:
        did = job(db, now, **options)
        db.commit()
    return did

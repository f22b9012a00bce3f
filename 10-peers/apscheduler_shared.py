"""APScheduler 3, its jobs in a table that the processes share: what its FAQ says not to do.

**Stops:** nothing; the table keeps the job over a restart, it does not hand it to one process.
**Lets through:** a run for each process that reads the due job before another has moved it on.
"""

import os
import sys

from apscheduler.events import EVENT_SCHEDULER_STARTED
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.blocking import BlockingScheduler
from close import close_week

URL = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
SECOND, MINUTE, HOUR, DAY = os.environ.get("CLOSE_AT", "0 0 18 fri").split()


def main() -> None:
    """Run the scheduler in this process, for ever; `setup` only makes its table and its job."""
    scheduler = BlockingScheduler(
        jobstores={"default": SQLAlchemyJobStore(URL)}, timezone="America/Mexico_City")
    if "setup" in sys.argv:
        scheduler.add_job(
            close_week, "cron", day_of_week=DAY, hour=HOUR, minute=MINUTE, second=SECOND,
            id="leaderboard_close")
        scheduler.add_listener(lambda _: scheduler.shutdown(wait=False), EVENT_SCHEDULER_STARTED)
    else:
        scheduler.add_listener(lambda _: print("ready", flush=True), EVENT_SCHEDULER_STARTED)
    scheduler.start()


if __name__ == "__main__":
    main()

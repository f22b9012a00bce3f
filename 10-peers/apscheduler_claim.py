"""APScheduler 3, its jobs in memory, and the claim of stage 03 in the job.

**Stops:** what the scheduler lets through: three processes start the job, one does the work.
**Lets through:** a slot for which no process was up.
"""

import os

from apscheduler.events import EVENT_SCHEDULER_STARTED
from apscheduler.schedulers.blocking import BlockingScheduler
from close_once import close_week

# Friday 18:00:00. The lab sets CLOSE_AT to see a slot come due.
SECOND, MINUTE, HOUR, DAY = os.environ.get("CLOSE_AT", "0 0 18 fri").split()


def main() -> None:
    """Run the scheduler in this process, for ever."""
    scheduler = BlockingScheduler(timezone="America/Mexico_City")
    scheduler.add_job(
        close_week, "cron", day_of_week=DAY, hour=HOUR, minute=MINUTE, second=SECOND)
    scheduler.add_listener(lambda _: print("ready", flush=True), EVENT_SCHEDULER_STARTED)
    scheduler.start()


if __name__ == "__main__":
    main()

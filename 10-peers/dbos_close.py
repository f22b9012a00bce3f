"""DBOS: a workflow on a schedule; its id is made of the schedule's name and the slot's time.

**Stops:** a second workflow for a slot; one whose process died is taken up when that restarts.
**Lets through:** a second run of a step whose end was not recorded: steps are at-least-once.
"""

import os
import sys
import threading
from datetime import datetime
from typing import Any

from close import close_week
from dbos import DBOS

DBOS(config={
    "name": "community", "system_database_url": os.environ["DATABASE_URL"],
    "application_version": "1", "run_admin_server": False,
    "executor_id": os.environ.get("HOSTNAME", "local"),  # who takes up whose workflows on restart
})


@DBOS.step()
def close() -> None:
    """The work, as one step."""
    close_week()


@DBOS.workflow()
def leaderboard_close(scheduled_at: datetime, context: Any) -> None:
    """Close the week of the slot `scheduled_at`."""
    close()


def main() -> None:
    """Run the scheduler in this process, for ever; `setup` only makes tables and schedule."""
    DBOS.launch()
    if "setup" in sys.argv:
        DBOS.apply_schedules([{
            "schedule_name": "leaderboard_close", "workflow_fn": leaderboard_close, "context": None,
            "schedule": os.environ.get("CLOSE_AT", "0 18 * * 5"),
            "cron_timezone": "America/Mexico_City"}])
        DBOS.destroy()
        return
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()

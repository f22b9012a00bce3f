"""Procrastinate: a periodic task, put into its queue once a slot, by whichever worker comes first.

**Stops:** a second job for a slot: a unique row of the task's name and the slot's time.
**Lets through:** a worker that dies: its job stays "doing" until a task of yours retries it.
"""

import os
import sys

from close import close_week
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.periodic(cron=os.environ.get("CLOSE_AT", "0 0 * * 6"))  # UTC: Friday 18:00 in Mexico City
@app.task
def leaderboard_close(timestamp: int) -> None:
    """Close the week; `timestamp` is the slot's, in seconds since 1970 (UTC)."""
    close_week()


def main() -> None:
    """Run a worker in this process, for ever; `setup` only makes the tables."""
    if "setup" in sys.argv:
        with app.open():
            app.schema_manager.apply_schema()
        return
    print("ready", flush=True)
    app.run_worker()


if __name__ == "__main__":
    main()

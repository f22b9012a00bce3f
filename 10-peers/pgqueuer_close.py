"""PgQueuer: a schedule is a row, which one worker picks when it is due (SKIP LOCKED).

**Stops:** a second pick while the first worker is alive: it renews a heartbeat in that row.
**Lets through:** a worker that stood still for longer than its heartbeat may, and goes on.
"""

import asyncio
import os
import sys

import psycopg
from close import close_week
from pgqueuer import PgQueuer, PsycopgDriver, Queries
from pgqueuer.models import Schedule

CRON = os.environ.get("CLOSE_AT", "0 0 * * 6")  # UTC: Friday 18:00 in Mexico City


async def main() -> None:
    """Run a worker in this process, for ever; `setup` only makes the tables."""
    connection = await psycopg.AsyncConnection.connect(
        os.environ["DATABASE_URL"], autocommit=True)
    driver = PsycopgDriver(connection)
    if "setup" in sys.argv:
        await Queries(driver).install()
        await connection.close()
        return
    worker = PgQueuer(driver)

    @worker.schedule("leaderboard_close", CRON)
    async def leaderboard_close(schedule: Schedule) -> None:
        await asyncio.to_thread(close_week)

    print("ready", flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())

"""Effects outside the database: what a push server received, laid beside the tables for the judge.

A stage with a `[push]` table in stage.toml gets a push server of its own. When a run is judged,
what the server received is in the temporary table `pushes`, which the effects' SQL reads like any
other.
"""

from __future__ import annotations

from typing import Any

import psycopg

from lab.engine.postgres import Database
from lab.world.ntfy import PushServer

__all__ = ["Pushes"]

TABLE = """CREATE TEMP TABLE IF NOT EXISTS pushes
    (n int, topic text, message text, key text, found boolean)"""


class Pushes:
    """A push server, and a look at the database whenever a message comes in.

    Args:
        database: the run's own database.
        found: SQL with one parameter, the message's sequence id; gives one boolean: whether what
            the message is about can be seen at that moment by whoever looks it up.
    """

    def __init__(self, database: Database, found: str) -> None:
        self.server = PushServer()
        self.found: dict[str, bool] = {}  # message id -> whether it could be seen when it came
        self._sql = found
        self._reader = database.connect()
        self.server.on_message = self._look

    def _look(self, message: dict[str, Any]) -> None:
        key = message.get("sequence_id", "")
        self.found[message["id"]] = self._reader.execute(self._sql, (key,)).fetchone()[0]

    def clear(self) -> None:
        """Forget every message: another run begins."""
        self.server.clear()
        self.found.clear()

    def show(self, conn: psycopg.Connection) -> None:
        """Put what was received into this connection's temporary table."""
        rows = [(n, m["topic"], m["message"], m.get("sequence_id"), self.found[m["id"]])
                for n, m in enumerate(self.server.messages)]
        conn.execute(TABLE)
        conn.execute("TRUNCATE pushes")
        with conn.cursor() as cursor:
            cursor.executemany("INSERT INTO pushes VALUES (%s, %s, %s, %s, %s)", rows)

    def close(self) -> None:
        """Close the server and the connection."""
        self.server.close()
        self._reader.close()

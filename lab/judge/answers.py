"""What the replicas answered to their callers, laid beside the tables for the judge.

A stage whose stage.toml says `answers = true` finds it in the temporary table `answers`, which the
effects' SQL reads like any other: a run that ended well is a row, `value` its answer as text.
"""

from __future__ import annotations

import psycopg

from lab.engine.history import History

__all__ = ["show"]

TABLE = "CREATE TEMP TABLE IF NOT EXISTS answers (replica text, program text, value text)"


def show(conn: psycopg.Connection, history: History) -> None:
    """Put the answers of a run into this connection's temporary table.

    A run that returned None, or anything but a boolean, a number or a text, has no value.
    """
    running: dict[str, str] = {}
    rows = []
    for event in history:
        if event.kind == "tick":
            running[event.replica] = event.statement
        elif event.kind == "end" and event.outcome == "ok":
            value = event.detail.get("value")
            rows.append((event.replica, running[event.replica],
                         None if value is None else str(value)))
    conn.execute(TABLE)
    conn.execute("TRUNCATE answers")
    with conn.cursor() as cursor:
        cursor.executemany("INSERT INTO answers VALUES (%s, %s, %s)", rows)

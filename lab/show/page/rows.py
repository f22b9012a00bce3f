"""The tables of a run, for the page: what is committed, and what is new since the start."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from lab.world.clock import MX

__all__ = ["Tables"]

SMALL = 8  # rows: a table with so few is shown whole, one with more only where it changed
MOST = 12  # rows of one table on the page
LONG = 34  # characters of a text
COLUMNS = """
SELECT c.relname, a.attname, target.relname
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_constraint f ON f.contype = 'f' AND f.conrelid = c.oid AND f.conkey = ARRAY[a.attnum]
  LEFT JOIN pg_class target ON target.oid = f.confrelid AND EXISTS (
       SELECT FROM pg_attribute n WHERE n.attrelid = target.oid AND n.attname = 'name')
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
 ORDER BY c.oid, a.attnum
"""


class Tables:
    """The tables of a database, read by a connection that sees only what is committed.

    Args:
        monitor: an autocommit connection; what it sees now is how every run begins.
        every: show small tables from the start, not only once they change.
    """

    def __init__(self, monitor: psycopg.Connection, every: bool) -> None:
        self._every = every
        self._heads: dict[str, list[str]] = {}
        self._queries: dict[str, sql.Composed] = {}
        columns: dict[str, list[tuple[str, str | None]]] = {}
        for table, column, target in monitor.execute(COLUMNS):
            columns.setdefault(table, []).append((column, target))
        for table, found in columns.items():
            self._heads[table] = [c.removesuffix("_id") if target else c for c, target in found]
            self._queries[table] = sql.SQL("SELECT {} FROM {} AS here ORDER BY 1").format(
                sql.SQL(", ").join(map(_value, *zip(*found, strict=True))), sql.Identifier(table))
        self._start = self._read(monitor)

    def look(self, monitor: psycopg.Connection) -> list[dict[str, Any]]:
        """Each table that matters: name, columns, rows (new ones marked), how many rows in all."""
        shown = []
        for table, rows in self._read(monitor).items():
            before = self._start.get(table, [])
            fresh = [row for row in rows if row not in before]
            small = len(rows) <= SMALL and len(before) <= SMALL
            if before and rows == before and not (small and self._every):
                continue
            keep = rows if small or not before else fresh
            shown.append({"name": table, "columns": self._heads[table], "count": len(rows),
                          "rows": [{"new": row in fresh, "cells": [_text(v) for v in row]}
                                   for row in keep[-MOST:]]})
        return shown

    def _read(self, monitor: psycopg.Connection) -> dict[str, list[tuple]]:
        return {table: monitor.execute(query).fetchall()
                for table, query in self._queries.items()}


def _value(column: str, target: str | None) -> sql.Composed:
    if target is None:
        return sql.SQL("here.{}").format(sql.Identifier(column))
    return sql.SQL("(SELECT name FROM {} AS there WHERE there.id = here.{})").format(
        sql.Identifier(target), sql.Identifier(column))


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(MX):%a %H:%M}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "NULL" if value is None else str(value)
    return text if len(text) <= LONG else text[:LONG - 1] + "…"

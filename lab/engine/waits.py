"""Who waits for whom: what Postgres itself says, never a guess from the time that has passed."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

__all__ = ["Waits"]


class Waits:
    """Questions to the server about its backends.

    Args:
        connection: an autocommit connection of the bench's own, past every gate.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def blocked(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """The backends among these that wait for a lock, and for whom.

        One that waits in a circle is left out: Postgres is about to break it (deadlock_timeout), so
        the world is not at rest yet.
        """
        rows = self.connection.execute(
            "SELECT pid, pg_blocking_pids(pid) FROM unnest(%s::int[]) AS pid", (list(pids),))
        blockers = {pid: set(by) for pid, by in rows.fetchall() if by}
        return {pid: by for pid, by in blockers.items() if not _in_circle(pid, blockers)}

    def alive(self, pids: Iterable[int]) -> set[int]:
        """The backends among these that still exist."""
        rows = self.connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)", (list(pids),))
        return {pid for pid, in rows.fetchall()}

    def locking(self, pids: Iterable[int]) -> set[int]:
        """The backends among these that hold an advisory lock."""
        rows = self.connection.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY(%s)", (list(pids),))
        return {pid for pid, in rows.fetchall()}

    def terminate(self, pids: Iterable[int]) -> None:
        """End these backends; what they had open is rolled back."""
        self.connection.execute(
            "SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (list(pids),))


def _in_circle(pid: int, blockers: dict[int, set[int]]) -> bool:
    seen: set[int] = set()
    todo = list(blockers[pid])
    while todo:
        other = todo.pop()
        if other == pid:
            return True
        if other not in seen:
            seen.add(other)
            todo += blockers.get(other, ())
    return False

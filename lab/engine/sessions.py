"""What the bench itself says in a replica's sessions, between its statements and unnoticed by it.

So that a run leaves no lock behind in a session that goes on to the next run; and so that a
deadlock ends in one way. Postgres ends the one whose deadlock_timeout runs out first, which on a
busy machine may be either. Here it is always the one whose statement closes the circle, and soon:
who moves while another one waits is given a short timeout, everyone else a long one. The role has
to be a superuser or have been granted that setting; else Postgres decides, after its own timeout.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from lab.engine.link import Link
from lab.engine.waits import Waits
from lab.engine.wire import Gate

__all__ = ["Sessions"]

PATIENT, SWIFT = "5s", "10ms"


class Sessions:
    """The sessions of all replicas of a run.

    Args:
        gate: through which they go.
        waits: asks Postgres about them.
        name: of their database.
    """

    def __init__(self, gate: Gate, waits: Waits, name: str) -> None:
        self.gate, self.waits = gate, waits
        self._patience: dict[int | None, str] = {}
        try:
            waits.connection.execute(sql.SQL("ALTER DATABASE {} SET deadlock_timeout TO {}").format(
                sql.Identifier(name), PATIENT))
            self._may_set = True
        except psycopg.errors.InsufficientPrivilege:
            self._may_set = False

    def let_go(self) -> None:
        """Release the advisory locks that idle sessions hold, as the end of a session would."""
        idle = {link.pid: link for link in self.gate.links if link.idle}
        for pid in self.waits.locking(idle):
            self._say(idle[pid], "SELECT pg_advisory_unlock_all()")

    def about_to_move(self, link: Link, somebody_waits: bool) -> None:
        """Set the session's deadlock_timeout before its held statement is released."""
        wanted = SWIFT if somebody_waits else PATIENT
        if not self._may_set or not link.between or wanted == self._patience.get(link.pid, PATIENT):
            return
        self._say(link, f"SET deadlock_timeout = '{wanted}'")
        self._patience[link.pid] = wanted

    def new_run(self) -> None:
        """A rolled-back transaction takes its SET with it, so begin from what is known."""
        for link in self.gate.links:
            if link.idle and link.pid in self._patience:
                self._say(link, "RESET deadlock_timeout")
        self._patience.clear()

    def _say(self, link: Link, statement: str) -> None:
        link.ask(statement)
        while link.asked and self.gate.pump(10):
            pass

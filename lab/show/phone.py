"""What a member of the community finds on the phone once a run is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import psycopg
from rich.console import RenderableType

from lab.show import terminal

__all__ = ["PRIZE", "paid", "phone_of", "seen", "third"]

PRIZE = 10

_PODIUM = """
SELECT members.id, name FROM weekly_points JOIN members ON id = member_id
WHERE week = '2026-W22' ORDER BY points DESC, name LIMIT 3
"""


def third(conn: psycopg.Connection) -> str:
    """The name of the member of the post: third of the week 2026-W22."""
    return conn.execute(_PODIUM).fetchall()[2][1]


def phone_of(conn: psycopg.Connection, name: str, now: datetime) -> RenderableType:
    """The phone of a member, looked at when the world's time is `now` (aware)."""
    told, wallet = seen(conn, name)
    ages = [(body, (now - at).total_seconds() // 60) for body, at in told]
    return terminal.phone(name, ages, wallet, PRIZE)


def seen(conn: psycopg.Connection, name: str) -> tuple[Sequence[tuple[str, datetime]], int]:
    """A member's notifications, the newest first, each with its time; and the wallet."""
    told = conn.execute(
        "SELECT body, created_at FROM notifications JOIN members ON members.id = member_id"
        " WHERE name = %s ORDER BY created_at DESC, notifications.id DESC", (name,)).fetchall()
    wallet, = conn.execute(
        "SELECT coalesce(sum(amount), 0) FROM token_transactions JOIN members"
        " ON members.id = member_id WHERE name = %s", (name,)).fetchone()
    return told, wallet


def paid(conn: psycopg.Connection) -> dict[str, int]:
    """How often each member of the podium was paid."""
    return dict(conn.execute(
        f"SELECT name, count(token_transactions.id) FROM ({_PODIUM}) AS podium"
        " LEFT JOIN token_transactions ON member_id = podium.id"
        " GROUP BY podium.id, name ORDER BY count(*) DESC, name").fetchall())

"""The community that the lessons act on: members, points, coins, notifications, sections, threads.

`schema.sql` beside this file is the truth about the tables; the classes here map to it.
"""

from __future__ import annotations

import os
from datetime import date, datetime
from functools import cache
from typing import ClassVar

from sqlalchemy import DateTime, Engine, Text, create_engine, make_url, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from lab.errors import LabError
from lab.world.clock import MX


class Base(DeclarativeBase):
    """What the tables have in common: times carry their zone, texts have no length."""

    type_annotation_map: ClassVar = {datetime: DateTime(timezone=True), str: Text}


class Member(Base):
    """A person of the community, or its bot."""

    __tablename__ = "members"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    joined_on: Mapped[date | None]
    is_bot: Mapped[bool] = mapped_column(default=False)


class WeeklyPoints(Base):
    """The points of a member in a week."""

    __tablename__ = "weekly_points"

    member_id: Mapped[int] = mapped_column(primary_key=True)
    week: Mapped[str] = mapped_column(primary_key=True)
    points: Mapped[int]


class TokenTransaction(Base):
    """A line of the coins ledger; a wallet is the sum of its lines."""

    __tablename__ = "token_transactions"

    id: Mapped[int] = mapped_column(primary_key=True)
    member_id: Mapped[int]
    amount: Mapped[int]
    reason: Mapped[str]
    created_at: Mapped[datetime]


class Notification(Base):
    """What a member finds on the phone."""

    __tablename__ = "notifications"

    id: Mapped[int] = mapped_column(primary_key=True)
    member_id: Mapped[int]
    kind: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[datetime]


class Section(Base):
    """A part of the forum."""

    __tablename__ = "sections"

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str]
    name: Mapped[str]


class Thread(Base):
    """A conversation in a section, opened by a member or by the bot."""

    __tablename__ = "threads"

    id: Mapped[int] = mapped_column(primary_key=True)
    section_id: Mapped[int]
    author_id: Mapped[int]
    title: Mapped[str]
    body_md: Mapped[str]
    created_at: Mapped[datetime]


@cache
def _engine(url: str) -> Engine:
    # A statement is one message however often it ran: nothing is prepared on the server after the
    # fifth time, and nothing is asked about the server before the first.
    return create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        connect_args={"prepare_threshold": None},
        _initialize=False,
    )


def open_session() -> Session:
    """A session on the database that the environment's DATABASE_URL names; close it with `with`.

    The connections are pooled per process. Nothing is committed unless the caller does it.

    Raises:
        LabError: DATABASE_URL is not set.
    """
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise LabError("DATABASE_URL is not set, so there is no community to act on.",
                       "Set it to the URL of a database that has the lab's tables.")
    return Session(_engine(url), expire_on_commit=False)


def week_key(now: datetime) -> str:
    """The slot that `now` falls into: ISO year and ISO week in Mexico City, such as "2026-W22".

    Args:
        now: an aware datetime of any zone.
    """
    year, week, _ = now.astimezone(MX).isocalendar()
    return f"{year}-W{week:02d}"


def podium(db: Session, week: str) -> list[tuple[Member, int]]:
    """The three members with most points in a week, best first; ties in the order of names.

    Args:
        week: a slot key, as `week_key` makes it.
    """
    ranking = (
        select(Member, WeeklyPoints.points)
        .join(WeeklyPoints, WeeklyPoints.member_id == Member.id)
        .where(WeeklyPoints.week == week)
        .order_by(WeeklyPoints.points.desc(), Member.name)
        .limit(3)
    )
    return [(member, points) for member, points in db.execute(ranking)]

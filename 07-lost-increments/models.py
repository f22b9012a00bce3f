"""What every version shares: the key as an object, and sessions from one pool.

**Stops:** nothing.
**Lets through:** nothing by itself; what is done between reading and writing decides that.
"""

import os
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

POOL = 20  # connections of one process; its other requests wait for one of them


class Base(DeclarativeBase):
    """The tables of schema.sql."""


class ApiKey(Base):
    """A key, and how often it was used."""

    __tablename__ = "api_key"

    id: Mapped[int] = mapped_column(primary_key=True)
    secret: Mapped[str]
    use_count: Mapped[int]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


@cache
def engine() -> Engine:
    """The engine on DATABASE_URL, with its pool of connections."""
    return create_engine(
        make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"),
        pool_size=POOL, max_overflow=0, _initialize=False,
        connect_args={"prepare_threshold": None})


def open_session(isolation: str = "") -> Session:
    """A session, its first transaction at this level; close it with `with`. The caller commits."""
    db = Session(engine(), expire_on_commit=False)
    if isolation:
        db.execute(text(f"SET TRANSACTION ISOLATION LEVEL {isolation}"))
    return db


def one_statement(sql: str, **values: Any) -> Any:
    """Run one statement in a transaction of its own; returns its first value, None for no row."""
    with open_session() as db:
        value = db.scalar(text(sql), values)
        db.commit()
    return value

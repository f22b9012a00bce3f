"""Authenticate a key and count its use with the ORM, and notice when somebody came between.

**Stops:** lost increments: the UPDATE asks for the version that was read, and finds no row.
**Lets through:** a writer that leaves the version as it is, such as `revoke.py`: nobody notices.
It costs a second attempt for each collision.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.orm.exc import StaleDataError

from models import open_session
from retry import ATTEMPTS, TooBusy


class Base(DeclarativeBase):
    """The tables of schema.sql."""


class ApiKey(Base):
    """A key with a version, which every UPDATE checks and raises by one."""

    __tablename__ = "api_key"

    id: Mapped[int] = mapped_column(primary_key=True)
    secret: Mapped[str]
    use_count: Mapped[int]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column()

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 (SQLAlchemy reads it)


def authenticate(secret: str, now: datetime) -> int | None:
    """Count a use of the key; returns its new count, or None when it may not be used (401)."""
    for _ in range(ATTEMPTS):
        try:
            return _attempt(secret, now)
        except StaleDataError:
            continue
    raise TooBusy(secret)


def _attempt(secret: str, now: datetime) -> int | None:
    with open_session() as db:
        key = db.scalar(select(ApiKey).where(ApiKey.secret == secret))
        if key is None or key.revoked_at:
            return None
        key.use_count += 1  # safe: UPDATE … WHERE id = … AND version = the one that we read
        key.last_used_at = now
        db.commit()
    return key.use_count

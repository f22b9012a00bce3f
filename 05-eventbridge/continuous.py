"""The jobs that have no hour of their own: anniversaries, and threads to be closed.

**Stops:** a second congratulation on the same day, once the first is committed; closing twice.
**Lets through:** its own errors. One member without a date of joining fails the whole tick.
"""

from datetime import datetime, timedelta

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from lab.world.community import Member, Notification


def anniversary(db: Session, now: datetime) -> list[str]:
    """Congratulate who joined on this day (Mexico City time) of an earlier year; never commits.

    Returns what it did, a line an entry. Raises AttributeError on a member without `joined_on`.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    greeted = select(Notification.member_id).where(
        Notification.kind == "anniversary", Notification.created_at >= midnight)
    did = []
    for member in db.scalars(select(Member).where(~Member.is_bot, Member.id.not_in(greeted))):
        years = now.year - member.joined_on.year
        if years and (member.joined_on.month, member.joined_on.day) == (now.month, now.day):
            db.add(Notification(
                member_id=member.id, kind="anniversary", created_at=now,
                body=f"🎂 ¡Feliz aniversario! {years} en la comunidad."))
            did.append(f"anniversary of {member.name}")
    return did


def zombie_threads(db: Session, now: datetime) -> list[str]:
    """Close threads that were opened more than 30 days before `now` (aware); never commits.

    Returns a line a thread. One statement finds and closes them, so two at once close each once.
    """
    closed = db.scalars(text(
        "UPDATE threads SET closed_at = :now WHERE closed_at IS NULL AND created_at < :limit"
        " RETURNING title"), {"now": now, "limit": now - timedelta(days=30)})
    return [f"closed: {title}" for title in closed]

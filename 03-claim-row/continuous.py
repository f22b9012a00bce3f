"""The tick's other job, which has no hour of its own: congratulate members on their anniversary.

**Stops:** a second congratulation on the same day, once the first is committed.
**Lets through:** its own errors. One member without a date of joining fails the whole tick.
"""

from datetime import datetime

from sqlalchemy import select
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

"""The job that every library here is given: the weekly close of stage 00, with nothing to guard it.

**Stops:** nothing; whether it runs once is the library's part.
**Lets through:** a second call, and a thread that was not written: `post_thread` returns None.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from lab.world import clock, community
from lab.world.community import Notification, TokenTransaction, podium, week_key

import bot_service

PRIZE = 10
MEDALS = "🥇🥈🥉"


def close_week(now: datetime | None = None) -> None:
    """Close the week that `now` (Mexico City time; the community's clock if None) is in."""
    now = now or clock.now()
    with community.open_session() as db:
        pay(db, now)
        db.commit()


def pay(db: Session, now: datetime) -> None:
    """The week's coins, notifications and thread, in the caller's transaction."""
    winners = podium(db, week_key(now))
    for medal, (member, _) in zip(MEDALS, winners, strict=False):
        db.add(TokenTransaction(
            member_id=member.id, amount=PRIZE, reason="leaderboard_top3", created_at=now))
        db.add(Notification(
            member_id=member.id, kind="leaderboard_top3", created_at=now,
            body=f"{medal} ¡Quedaste en el top 3! +{PRIZE} Coins."))
    db.flush()
    bot_service.post_thread(
        db, section_slug="general", title=f"🏆 Top 3 de la semana — {now:%d %b %Y}", now=now,
        body_md="\n".join(f"1. {member.name}: {points}" for member, points in winners))

"""The weekly job: ten coins and a notification for each of the top three, and a thread about them.

**Stops:** a second call, once the thread of the first is committed.
**Lets through:** two calls at the same time, and every call if the thread was not written.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from lab.world.community import Notification, Thread, TokenTransaction, podium, week_key

import bot_service

PRIZE = 10
MEDALS = "🥇🥈🥉"


def leaderboard_close(db: Session, now: datetime, post_thread=bot_service.post_thread) -> list[str]:
    """Close the week that `now` (Mexico City time) is in; the caller commits.

    Returns what it did, a line an entry; nothing if the thread of this week exists.
    """
    title = f"🏆 Top 3 de la semana — {now:%d %b %Y}"
    # Not safe: the coins are paid whether or not post_thread writes what is looked for here.
    if db.scalar(select(Thread.id).where(Thread.title == title).limit(1)):
        return []
    winners = podium(db, week_key(now))
    for medal, (member, _) in zip(MEDALS, winners, strict=False):
        db.add(TokenTransaction(
            member_id=member.id, amount=PRIZE, reason="leaderboard_top3", created_at=now))
        db.add(Notification(
            member_id=member.id, kind="leaderboard_top3", created_at=now,
            body=f"{medal} ¡Quedaste en el top 3! +{PRIZE} Coins por tu actividad esta semana."))
    db.flush()
    post_thread(
        db, section_slug="general", title=title, now=now,
        body_md="\n".join(f"1. {member.name}: {points} puntos" for member, points in winners))
    return [f"leaderboard closed: {', '.join(member.name for member, _ in winners)} +{PRIZE}"]

"""Dead end 3: no guard at the job; each consumer asks whether it has done this already.

**Stops:** a second bell for a member who has had one this week, when the ticks come in turn.
**Lets through:** all else. The coins and the thread do not ask; and ticks that overlap do not see
each other's rows.
"""

from datetime import datetime, timedelta

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from lab.world import community
from lab.world.community import Notification, TokenTransaction, podium, week_key

import bot_service
from leaderboard import MEDALS, PRIZE, friday_18_window

REASON = "leaderboard_top3"


def leaderboard_close(db: Session, now: datetime, coins_ask: bool) -> list[str]:
    """Close the week that `now` (Mexico City time) is in; the caller commits.

    Returns what it did, a line an entry. With `coins_ask` the coins look for themselves as well.
    """
    did, this_week = [], now - timedelta(days=6)
    winners = podium(db, week_key(now))
    for medal, (member, _) in zip(MEDALS, winners, strict=False):
        paid = exists().where(TokenTransaction.member_id == member.id,
                              TokenTransaction.reason == REASON,
                              TokenTransaction.created_at > this_week)
        if not (coins_ask and db.scalar(select(paid))):
            db.add(TokenTransaction(
                member_id=member.id, amount=PRIZE, reason=REASON, created_at=now))
            did.append(f"{member.name} +{PRIZE}")
        told = exists().where(Notification.member_id == member.id, Notification.kind == REASON,
                              Notification.created_at > this_week)
        # Not safe: it keeps the bell quiet, and with the bell everybody who would have noticed.
        if not db.scalar(select(told)):
            db.add(Notification(
                member_id=member.id, kind=REASON, created_at=now,
                body=f"{medal} ¡Quedaste en el top 3! +{PRIZE} Coins por tu actividad "
                     "esta semana."))
    db.flush()
    bot_service.post_thread(
        db, section_slug="general", title=f"🏆 Top 3 de la semana — {now:%d %b %Y}", now=now,
        body_md="\n".join(f"1. {member.name}: {points} puntos" for member, points in winners))
    return did


def tick(now: datetime, coins_ask: bool = False) -> list[str]:
    """One wake-up, in one transaction; returns what it did, a line an entry."""
    with community.open_session() as db:
        did = leaderboard_close(db, now, coins_ask) if friday_18_window(now) else []
        db.commit()
    return did

"""The weekly job: ten coins and a notification for each of the top three, and a thread about them.

**Stops:** nothing by itself. Who calls it twice pays twice, unless a `claim` says no.
**Lets through:** every second call for the same week that nobody keeps away from it.
"""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from lab.world.community import Notification, TokenTransaction, podium, week_key

import bot_service

PRIZE = 10
MEDALS = "🥇🥈🥉"


def friday_18_window(now: datetime) -> bool:
    """Whether `now` (Mexico City time) is in the quarter of an hour in which the week is closed."""
    return now.weekday() == 4 and now.hour == 18 and now.minute < 15


def leaderboard_close(
    db: Session, now: datetime, claim: Callable[[Session, str], bool] | None = None
) -> list[str]:
    """Close the week that `now` (Mexico City time) is in; the caller commits.

    Returns what it did, a line an entry; nothing outside the window or if the claim is refused.
    """
    if not friday_18_window(now) or (claim and not claim(db, week_key(now))):
        return []
    winners = podium(db, week_key(now))
    for medal, (member, _) in zip(MEDALS, winners, strict=False):
        db.add(TokenTransaction(
            member_id=member.id, amount=PRIZE, reason="leaderboard_top3", created_at=now))
        db.add(Notification(
            member_id=member.id, kind="leaderboard_top3", created_at=now,
            body=f"{medal} ¡Quedaste en el top 3! +{PRIZE} Coins por tu actividad esta semana."))
    db.flush()
    bot_service.post_thread(
        db, section_slug="general", title=f"🏆 Top 3 de la semana — {now:%d %b %Y}", now=now,
        body_md="\n".join(f"1. {member.name}: {points} puntos" for member, points in winners))
    return [f"leaderboard closed: {', '.join(member.name for member, _ in winners)} +{PRIZE}"]

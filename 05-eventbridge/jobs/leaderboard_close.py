"""The weekly job: ten coins and a notification for each of the top three, and a thread about them.

**Stops:** a second run for the same week, at the same time or later, whoever starts it.
**Lets through:** a thread that was not written: the slot is used up, and nobody tries again.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from lab.world.community import Notification, TokenTransaction, podium, week_key

import bot_service
from jobs.claims import claim_run

PRIZE = 10
MEDALS = "🥇🥈🥉"


def run(
    db: Session, now: datetime, post_thread=bot_service.post_thread, claim=claim_run
) -> list[str]:
    """Close the week that `now` (Mexico City time) is in; the caller commits.

    Returns what it did, a line an entry; nothing if the week was claimed before.
    """
    title = f"🏆 Top 3 de la semana — {now:%d %b %Y}"
    # Safe: the claim is committed with the coins or not at all, and a rival waits to see which.
    if not claim(db, "leaderboard_close", week_key(now)):
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

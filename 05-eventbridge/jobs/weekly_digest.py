"""The weekly digest: each member with points this week is told how many.

**Stops:** a second digest of the same week.
**Lets through:** a notification that the phone never shows; this writes the row, no more.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world.community import week_key

from jobs.claims import claim_run


def run(db: Session, now: datetime) -> list[str]:
    """Tell the points of the week that `now` (Mexico City time) is in; the caller commits.

    Returns one line; nothing if the week was claimed before.
    """
    if not claim_run(db, "weekly_digest", week_key(now)):
        return []
    told = db.execute(text("""
        INSERT INTO notifications (member_id, kind, body, created_at)
        SELECT member_id, 'weekly_digest', '📬 Esta semana sumaste ' || points || ' puntos.', :now
        FROM weekly_points WHERE week = :week AND points > 0
    """), {"week": week_key(now), "now": now})
    return [f"digest: {told.rowcount} members told"]

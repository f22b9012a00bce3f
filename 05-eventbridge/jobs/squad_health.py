"""The weekly report on the squads: how many of each were active, and how many points they made.

**Stops:** a second report on the same week.
**Lets through:** points that arrive after the report.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from lab.world.community import week_key

from jobs.claims import claim_run


def run(db: Session, now: datetime) -> list[str]:
    """Report on the week that `now` (Mexico City time) is in; the caller commits.

    Returns a line a squad; nothing if the week was claimed before.
    """
    if not claim_run(db, "squad_health", week_key(now)):
        return []
    rows = db.execute(text("""
        INSERT INTO squad_reports (squad_id, week, active, points)
        SELECT squads.id, :week, count(weekly_points.points), coalesce(sum(weekly_points.points), 0)
        FROM squads
        LEFT JOIN squad_members ON squad_members.squad_id = squads.id
        LEFT JOIN weekly_points ON weekly_points.member_id = squad_members.member_id
            AND weekly_points.week = :week AND weekly_points.points > 0
        GROUP BY squads.id
        RETURNING squad_id, active, points
    """), {"week": week_key(now)})
    return [f"squad {squad}: {active} active, {points} points"
            for squad, active, points in sorted(rows.tuples())]

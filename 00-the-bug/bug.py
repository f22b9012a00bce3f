"""The bug in thirty lines: run it two or three times, or in two terminals, on one Postgres.

**Stops:** nothing.
**Lets through:** each run. The week is closed again, because nothing remembers that it was.
"""

import os

import psycopg

BODY = "🥉 ¡Quedaste en el top 3! +10 Coins por tu actividad esta semana."

with psycopg.connect(os.environ["DATABASE_URL"]) as db:
    winners = db.execute(
        "SELECT id, name FROM weekly_points JOIN members ON id = member_id"
        " WHERE week = '2026-W22' ORDER BY points DESC, name LIMIT 3").fetchall()
    for member, _ in winners:
        db.execute(
            "INSERT INTO token_transactions (member_id, amount, reason, created_at)"
            " VALUES (%s, 10, 'leaderboard_top3', now())", [member])
        db.execute(
            "INSERT INTO notifications (member_id, kind, body, created_at)"
            " VALUES (%s, 'leaderboard_top3', %s, now())", [member, BODY])
    db.commit()

    member, name = winners[2]
    print(f"{name}:")
    for body, minutes in db.execute(
            "SELECT body, extract(epoch FROM now() - created_at)::int / 60"
            " FROM notifications WHERE member_id = %s ORDER BY id DESC", [member]):
        print(f"  {body} (hace {minutes} min)")
    wallet, = db.execute(
        "SELECT sum(amount) FROM token_transactions WHERE member_id = %s", [member]).fetchone()
    print(f"  wallet: +{wallet} (it should be +10)")

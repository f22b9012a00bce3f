"""The jobs that have an hour of their own. A new one is a file here and a line in JOBS.

Who decides *when* is not in this package: a scheduler, an operator, a test. `python -m jobs NAME`
runs one of them, once, for the slot that a given time falls into.
"""

from jobs import leaderboard_close, squad_health, weekly_digest

JOBS = {
    "leaderboard_close": leaderboard_close.run,
    "squad_health": squad_health.run,
    "weekly_digest": weekly_digest.run,
}

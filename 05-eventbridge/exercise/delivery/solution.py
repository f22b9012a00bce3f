"""A delivery: the scheduler fills in what its schedule carries, and starts the command."""

from datetime import datetime

from lab.world.clock import MX

from jobs.__main__ import command


def fill(planned: datetime, now: datetime) -> list[str]:
    """The command that this delivery starts.

    Args:
        planned: the time for which the schedule was made (Mexico City time).
        now: the time at which it is delivered, minutes or days later (Mexico City time).
    """
    return ["python", "-m", "jobs", "leaderboard_close", "--now", planned.isoformat()]


def deliver(planned: str, now: datetime) -> None:
    """Deliver once; ends with the exit code of the command."""
    command(fill(datetime.fromisoformat(planned).astimezone(MX), now)[3:])

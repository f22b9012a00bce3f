"""A mistake to try: the command without its claim, "because the scheduler fires once anyway".

**Stops:** nothing.
**Lets through:** every second delivery, and delivery is at least once: each one pays.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from lab.world import clock

from jobs import leaderboard_close
from jobs.__main__ import when
from jobs.entry import run_job


def no_claim(db: Session, name: str, key: str) -> bool:
    """What `claim_run` would be if nobody asked. Not safe: every caller owns the slot."""
    return True


def close(now: datetime) -> list[str]:
    """Close the week that `now` (Mexico City time) is in; returns what it did, a line an entry."""
    return run_job(leaderboard_close.run, now, claim=no_claim)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of `python -m jobs`, for this one job."""
    parser = argparse.ArgumentParser("python -m unclaimed", allow_abbrev=False)
    parser.add_argument("name", choices=["leaderboard_close"])
    parser.add_argument("--now", type=when, metavar="ISO8601")
    args = parser.parse_args(argv)
    print(*close(args.now or clock.now()), sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
